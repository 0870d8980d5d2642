internal import Coffer
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

extension KeySource {
    /// Reads the key. `purpose` is what a prompt asks for, such as `Key of people.coffer`; a new key is asked for twice.
    func key(for purpose: String, isNew: Bool = false) throws(Failure) -> SymmetricKey {
        switch origin {
        case .prompt: try promptedKey(for: purpose, isNew: isNew)
        case .file(let path): try key(from: Self.contents(ofFile: path))
        case .environment(let name): try key(from: Self.contents(ofVariable: name))
        case .descriptor(let number): try key(from: Self.contents(ofDescriptor: number))
        case .standardInput: try key(from: Self.contentsOfStandardInput())
        case .command(let command): try key(from: Self.output(of: command))
        }
    }

    private func promptedKey(for purpose: String, isNew: Bool) throws(Failure) -> SymmetricKey {
        guard let terminal = Terminal() else {
            throw Failure.keyUnavailable("there is no terminal to ask for the key", hint: Self.hintWithoutTerminal)
        }
        let typed = try key(from: terminal.secret(prompt: purpose + ": "))
        if isNew, try key(from: terminal.secret(prompt: "The same again: ")) != typed {
            throw Failure.unusableKey("the two entries differ")
        }
        return typed
    }

    static let hintWithoutTerminal = "name a source of the key: --key file:PATH, env:NAME, fd:N, stdin or cmd:COMMAND"

    private static func contents(ofFile path: String) throws(Failure) -> SecretBytes {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure.keyUnavailable(Failure.system(errno, path).message) }
        defer { close(descriptor) }
        var secret = SecretBytes()
        try secret.appendContents(of: descriptor, named: path)
        return secret
    }

    private static func contents(ofVariable name: String) throws(Failure) -> SecretBytes {
        guard let value = unsafe getenv(name) else {
            throw Failure.keyUnavailable("there is no environment variable \(name)")
        }
        return try unsafe SecretBytes(UnsafeRawBufferPointer(start: value, count: strlen(value)))
    }

    private static func contents(ofDescriptor number: Int32) throws(Failure) -> SecretBytes {
        var secret = SecretBytes()
        try secret.appendContents(of: number, named: "file descriptor \(number)")
        close(number)
        return secret
    }

    private static func contentsOfStandardInput() throws(Failure) -> SecretBytes {
        guard isatty(STDIN_FILENO) == 0 else {
            throw Failure.keyUnavailable(
                "standard input is a terminal, which would show the key", hint: "--key prompt asks without showing it")
        }
        var secret = SecretBytes()
        try secret.appendContents(of: STDIN_FILENO, named: "standard input")
        return secret
    }

    /// What `command`, run by the shell, writes to its standard output. Its input is empty and its errors are shown.
    private static func output(of command: String) throws(Failure) -> SecretBytes {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", command]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        do {
            try process.run()
        } catch {
            throw Failure.keyUnavailable("the command for the key cannot be started")
        }
        var secret = SecretBytes()
        defer {
            // Closed, a command that still writes ends instead of waiting for a reader.
            try? output.fileHandleForReading.close()
            process.waitUntilExit()
        }
        try secret.appendContents(of: output.fileHandleForReading.fileDescriptor, named: "the output of the command")
        process.waitUntilExit()
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            throw Failure.keyUnavailable("the command for the key ended with status \(process.terminationStatus)")
        }
        return secret
    }
}
