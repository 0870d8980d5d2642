internal import Coffer
internal import CofferSealing
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

@_spi(Tool) extension KeySource {
    /// A function that returns when a descriptor can be read, or at once where it is less than 0, and throws what is to end the
    /// reading.
    public typealias Wait = (_ descriptor: Int32) throws -> Void

    /// Reads the key, and what there would be to say of a new one.
    ///
    /// - Parameter wait: is called before each reading that may take long. Default: the reading itself waits.
    /// - Throws: ``KeySourceError``, or what `wait` throws.
    public func reading(for request: KeyRequest, waiting wait: Wait = { _ in }) throws -> KeyReading {
        var reading = try encoding.reading(from: contents(for: request, waiting: wait))
        if case .file(let path) = origin { reading.weaknesses += KeyWeakness.weaknesses(ofFile: path) }
        return reading
    }

    /// Reads what is there, as it is.
    public func contents(for request: KeyRequest, waiting wait: Wait = { _ in }) throws -> KeyBytes {
        switch origin {
        case .file(let path):
            return try Self.contents(ofFile: path, named: path, ifMissing: "the file of the key", wait)
        case .environment(let name): return try Self.contents(ofVariable: name)
        case .descriptor(let number):
            defer { close(number) }
            return try Self.contents(of: number, named: "file descriptor \(number)", wait)
        case .standardInput:
            guard isatty(STDIN_FILENO) == 0 else {
                throw KeySourceError.unavailable("standard input is a terminal, which would show what is typed")
            }
            return try Self.contents(of: STDIN_FILENO, named: "standard input", wait)
        case .command(let line): return try Self.output(of: line, request, wait)
        case .credential(let name): return try Self.contents(ofCredential: name, wait)
        case .keyring(let description): return try Keyring.contents(ofKey: description)
        }
    }

    private static func contents(of descriptor: Int32, named name: String, _ wait: Wait) throws -> KeyBytes {
        var secret = KeyBytes()
        try secret.appendContents(of: descriptor, named: name, waiting: wait)
        return secret
    }

    /// - Parameter ifMissing: what a message calls it where nothing is at `path`, which may be the secret itself then, as in
    ///   `file:$PASSWORD`.
    private static func contents(
        ofFile path: String, named name: String, ifMissing: String, _ wait: Wait
    ) throws -> KeyBytes {
        var descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        while descriptor < 0, errno == EINTR {
            // A pipe that nobody has opened for writing yet.
            try wait(-1)
            descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        }
        guard descriptor >= 0 else {
            let number = errno
            let isThere = unsafe access(path, F_OK) == 0
            throw KeySourceError.unavailable(SystemError.message(number, isThere ? name : ifMissing))
        }
        defer { close(descriptor) }
        return try contents(of: descriptor, named: name, wait)
    }

    private static func contents(ofVariable name: String) throws(KeySourceError) -> KeyBytes {
        guard let value = unsafe getenv(name) else {
            // What is not a name may be the secret itself, as in env:$PASSWORD, and so may be digits of it.
            let isName =
                name.utf8.count <= 32 && name.first?.isNumber == false
                && name.utf8.contains { $0.hexDigitValue == nil }
                && name.allSatisfy { $0.isASCII && ($0.isUppercase || $0.isNumber || $0 == "_") }
            throw .unavailable(
                isName
                    ? "the environment variable \(name) is not set"
                    : "no environment variable has the name that was given to env:",
                hint: isName ? nil : "env: takes the name of a variable, as in env:COFFER_KEY, and not its value")
        }
        return try unsafe KeyBytes(UnsafeRawBufferPointer(start: value, count: strlen(value)))
    }

    private static func contents(ofCredential name: String, _ wait: Wait) throws -> KeyBytes {
        // systemd.exec(5): a name of a file, without a path.
        guard name != ".", name != "..", !name.contains("/") else {
            throw KeySourceError.unavailable("a credential has a name without a slash")
        }
        guard let folder = unsafe getenv("CREDENTIALS_DIRECTORY") else {
            throw KeySourceError.unavailable(
                "this process has no credentials: CREDENTIALS_DIRECTORY is not in its environment",
                hint: "systemd sets it for a unit with LoadCredential= or LoadCredentialEncrypted=")
        }
        let path = unsafe String(cString: folder) + "/" + name
        return try contents(ofFile: path, named: "credential \(name)", ifMissing: "the credential", wait)
    }

    /// What `line`, run by the shell, writes to its standard output.
    private static func output(of line: String, _ request: KeyRequest, _ wait: Wait) throws -> KeyBytes {
        // One that was notified of a store is notified of no other than is meant now.
        let environment = ProcessInfo.processInfo.environment.filter { !KeyRequest.variables.contains($0.key) }
            .merging(request.environment) { $1 }
        var command = try KeyCommand(line, environment: environment)
        defer { command.end() }
        let secret = try contents(of: command.output, named: "the output of the command", wait)
        try command.checkSuccess(waiting: wait)
        return secret
    }
}
