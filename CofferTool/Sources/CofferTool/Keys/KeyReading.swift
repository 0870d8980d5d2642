internal import Coffer
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

extension KeySource {
    /// Reads the key. `purpose` is what a prompt asks for, such as `Key of people.coffer`.
    func key(for purpose: String) throws(Failure) -> SymmetricKey { try reading(for: purpose).key }

    /// Reads a key that is to open a store from now on: twice, where somebody is asked. Says on standard error what makes it
    /// weak.
    func newKey(for purpose: String, _ console: Console) throws(Failure) -> SymmetricKey {
        let reading = try reading(for: purpose)
        if origin == .prompt {
            guard try self.reading(for: "The same again").key == reading.key else {
                throw Failure.unusableKey("the two entries differ")
            }
        }
        for weakness in reading.weaknesses {
            console.printWarning(weakness.message, code: weakness.code, hint: weakness.hint)
        }
        return reading.key
    }

    /// Reads the key, and what there would be to say of a new one.
    func reading(for purpose: String) throws(Failure) -> KeyReading {
        if let reading = EarlySecrets.key(from: self) { return reading }
        var reading = try reading(from: contents(for: purpose, "key"))
        if case .file(let path) = origin { reading.weaknesses += KeyWeakness.weaknesses(ofFile: path) }
        return reading
    }

    /// Reads a secret that is no key of a store, such as a password that a server knows. `noun` is what messages call it.
    func text(for purpose: String, _ noun: String) throws(Failure) -> String {
        guard encoding == .password else {
            throw Failure.usage("a \(noun) is text: hex+, base64+ and raw+ are for keys")
        }
        if let text = EarlySecrets.text(from: self) { return text }
        return try text(from: contents(for: purpose, noun), noun)
    }

    private func contents(for purpose: String, _ noun: String) throws(Failure) -> SecretBytes {
        switch origin {
        case .prompt:
            guard let terminal = Terminal() else {
                throw Failure.keyUnavailable(
                    "there is no terminal to ask for the \(noun)", hint: Self.hintWithoutTerminal)
            }
            return try terminal.secret(prompt: purpose + ": ")
        case .file(let path): return try Self.contents(ofFile: path)
        case .environment(let name): return try Self.contents(ofVariable: name)
        case .descriptor(let number): return try Self.contents(ofDescriptor: number)
        case .standardInput: return try Self.contentsOfStandardInput(noun)
        case .command(let command): return try Self.output(of: command, noun)
        }
    }

    static let hintWithoutTerminal = "name a source of the key: --key file:PATH, env:NAME, fd:N, stdin or cmd:COMMAND"

    private static func contents(ofFile path: String) throws(Failure) -> SecretBytes {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let number = errno
            // What leads to no file may be the secret itself, as in file:$PASSWORD.
            let isThere = unsafe access(path, F_OK) == 0
            throw Failure.keyUnavailable(
                Failure.system(number, isThere ? path : "the file that --key names").message)
        }
        defer { close(descriptor) }
        var secret = SecretBytes()
        try secret.appendContents(of: descriptor, named: path)
        return secret
    }

    private static func contents(ofVariable name: String) throws(Failure) -> SecretBytes {
        guard let value = unsafe getenv(name) else {
            // What is no name may be the secret itself, as in env:$PASSWORD.
            let isName = !name.utf8.contains { byte in
                !(UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) && byte != UInt8(ascii: "_")
                    && !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            }
            throw Failure.keyUnavailable(
                isName
                    ? "there is no environment variable \(name)"
                    : "there is no environment variable of the name that env: was given",
                hint: isName ? nil : "env: takes the name of a variable, as in env:COFFER_KEY, and not its value")
        }
        return try unsafe SecretBytes(UnsafeRawBufferPointer(start: value, count: strlen(value)))
    }

    private static func contents(ofDescriptor number: Int32) throws(Failure) -> SecretBytes {
        var secret = SecretBytes()
        try secret.appendContents(of: number, named: "file descriptor \(number)")
        close(number)
        return secret
    }

    private static func contentsOfStandardInput(_ noun: String) throws(Failure) -> SecretBytes {
        guard isatty(STDIN_FILENO) == 0 else {
            throw Failure.keyUnavailable(
                "standard input is a terminal, which would show the \(noun)",
                hint: "prompt in place of stdin asks without showing it")
        }
        var secret = SecretBytes()
        try secret.appendContents(of: STDIN_FILENO, named: "standard input")
        return secret
    }

    /// What `command`, run by the shell, writes to its standard output. Its input is empty and its errors are shown.
    private static func output(of command: String, _ noun: String) throws(Failure) -> SecretBytes {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", command]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        do {
            try process.run()
        } catch {
            throw Failure.keyUnavailable("the command for the \(noun) cannot be started")
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
            throw Failure.keyUnavailable("the command for the \(noun) ended with status \(process.terminationStatus)")
        }
        return secret
    }
}
