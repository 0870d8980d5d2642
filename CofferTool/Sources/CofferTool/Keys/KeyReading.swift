internal import Coffer
@_spi(Tool) internal import CofferKeys

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
        let reading = try namingOption {
            switch origin {
            case .prompt: try encoding.reading(from: Self.typed(purpose, "key"))
            case .named(let source):
                try Self.checkIsNoTerminal(source, "key") { try source.reading(for: request, waiting: Self.wait) }
            }
        }
        ForgottenEncoding.note(reading, of: option)
        return reading
    }

    /// Does what reads a secret. Its errors are failures then that say which option it was for.
    private func namingOption<R: ~Copyable>(_ body: () throws -> R) throws(Failure) -> R {
        do throws(Failure) {
            return try Failure.adapting(body)
        } catch {
            guard let option, error.code != Failure.cancelled.code else { throw error }
            throw error.about(option)
        }
    }

    /// Reads a secret that is not a key of a store, such as a password that a server knows. `noun` is what messages call it.
    func text(for purpose: String, _ noun: String) throws(Failure) -> String {
        guard encoding == .password else {
            throw Failure.usage("a \(noun) is text: hex+, base64+ and raw+ are for keys")
        }
        if let text = EarlySecrets.text(from: self) { return text }
        return try namingOption {
            switch origin {
            case .prompt: try Self.text(from: Self.typed(purpose, noun), noun)
            case .named(let source):
                try Self.text(
                    from: Self.checkIsNoTerminal(source, noun) {
                        try source.contents(for: request, waiting: Self.wait)
                    }, noun)
            }
        }
    }

    /// A signal ends what waits for a secret.
    private static func wait(_ descriptor: Int32) throws {
        if descriptor < 0 { try Interruption.check() } else { try Interruption.waitForInput(from: descriptor) }
    }

    private static func typed(_ purpose: String, _ noun: String) throws(Failure) -> KeyBytes {
        guard let terminal = Terminal() else {
            throw Failure.keyUnavailable("there is no terminal to ask for the \(noun)", hint: Self.hintWithoutTerminal)
        }
        return try terminal.secret(prompt: purpose + ": ")
    }

    static let hintWithoutTerminal =
        "name a source of the key: --key file:PATH, env:NAME, fd:N, stdin, cmd:COMMAND, credential:NAME or keyring:NAME"

    private static func checkIsNoTerminal<R: ~Copyable>(
        _ source: CofferKeys.KeySource, _ noun: String, _ read: () throws -> R
    ) throws -> R {
        guard source.usesStandardInput, isatty(STDIN_FILENO) != 0 else { return try read() }
        throw Failure.keyUnavailable(
            "standard input is a terminal, which would show the \(noun)",
            hint: "prompt in place of stdin asks without showing it")
    }

    /// The text that `secret` holds, less one line end.
    private static func text(from secret: consuming KeyBytes, _ noun: String) throws(Failure) -> String {
        secret.dropLast(secret.lineEndByteCount)
        guard secret.byteCount > 0 else { throw Failure.unusableKey("the source of the \(noun) is empty") }
        let text = unsafe secret.withBytes { unsafe String(validating: $0, as: UTF8.self) }
        guard let text, !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw Failure.unusableKey("a \(noun) is one line of text in UTF-8, and this is not")
        }
        return text
    }
}

extension Failure {
    init(_ error: KeySourceError) {
        switch error.code {
        case .invalidSource: self = .usage(error.message, hint: error.hint)
        case .unavailable: self = .keyUnavailable(error.message, hint: error.hint)
        case .unusable: self = .unusableKey(error.message, hint: error.hint)
        }
    }

    /// Does what reads a secret, whose errors are failures then.
    static func adapting<R: ~Copyable>(_ body: () throws -> R) throws(Failure) -> R {
        do {
            return try body()
        } catch let failure as Failure {
            throw failure
        } catch let error as KeySourceError {
            throw Failure(error)
        } catch {
            throw .keyUnavailable("the secret could not be read")
        }
    }
}
