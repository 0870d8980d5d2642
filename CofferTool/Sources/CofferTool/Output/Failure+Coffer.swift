internal import Coffer

extension Failure {
    /// An error of the library. Where something of this command's led to it, that is what counts.
    init(_ error: CofferError) {
        if let failure = error.cause as? Failure {
            self = failure
            return
        }
        self.init(
            message: error.description, hint: Self.hint(for: error.code), code: error.code.description,
            status: error.status, exit: Self.exitStatus(for: error.code))
    }

    /// An error of the library, in which a store is called as it was on the command line.
    init(_ error: CofferError, of store: String) {
        self.init(error)
        guard !(error.cause is Failure), let subject = error.subject, let path = try? StorePath(store),
            path.isMeant(by: subject)
        else { return }
        self = Failure(
            message: store + error.description.dropFirst(subject.count), hint: hint, code: code, status: status,
            exit: exit)
    }

    private static func exitStatus(for code: CofferError.Code) -> ExitStatus {
        switch code {
        case .wrongKey, .keyRequired, .notEncrypted: .wrongKey
        case .databaseNotFound, .notAStore: .noStore
        case .busy: .busy
        case .invalidKey: .keyUnavailable
        case .encryptionUnavailable: .encryptionUnavailable
        case .damaged: .damaged
        case .noSpace: .noSpace
        case .cancelled: .cancelled
        case .invalidDatabaseName: .usage
        default: .failed
        }
    }

    static func hint(for code: CofferError.Code) -> String? {
        switch code {
        case .keyRequired: KeySource.hintWithoutTerminal
        case .notEncrypted: "the store is not encrypted: leave --key and COFFER_KEY_SOURCE out"
        case .databaseNotFound: "coffer create makes a store"
        case .invalidDatabaseName:
            "NAME in NAME.coffer starts with a letter and holds lower-case letters, digits and _$()+-: with : for /"
        case .otherKeysExist: "--keep-key SOURCE keeps one of them, --drop-other-keys drops them"
        case .busy: "try again when it is done"
        case .encryptionUnavailable:
            "it takes SQLCipher's library (libsqlcipher-dev has it on Debian and Ubuntu) and an OpenSSL whose configuration "
                + "(OPENSSL_CONF) leaves its algorithms on"
        case .notOwner, .ioFailed: Owner.hint
        case .wrongKey: ForgottenEncoding.hint
        case .unsupportedFormat: "a newer coffer may open it"
        default: nil
        }
    }
}
