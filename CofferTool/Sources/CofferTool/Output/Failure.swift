internal import Foundation
internal import Coffer

#if Sync
internal import CofferSync
#endif

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Why the command did not do what was asked for: what is printed of it, and the status that the process ends with.
///
/// Nothing here holds the content of a document, a password or the bytes of a key, and no argument that may be one.
struct Failure: Error, Codable {
    /// What happened, to which thing.
    let message: String

    /// What to do about it, where that is not plain.
    var hint: String?

    /// The name of this kind of failure, in the same space as the codes of the library's errors.
    let code: String

    /// The HTTP-like status of this kind of failure.
    let status: Int

    /// The status that the process ends with.
    let exit: ExitStatus

    /// The file that was being read, and the line in it, where the failure is in one.
    var place: Place?

    struct Place: Equatable, Codable {
        let file: String
        let line: Int
    }
}

extension Failure {
    /// The command line itself makes no sense.
    static func usage(_ message: String, hint: String? = nil) -> Failure {
        Failure(message: message, hint: hint, code: "invalidArgument", status: 400, exit: .usage)
    }

    /// The source of a key did not yield one.
    static func keyUnavailable(_ message: String, hint: String? = nil) -> Failure {
        Failure(message: message, hint: hint, code: "keyUnavailable", status: 400, exit: .keyUnavailable)
    }

    /// The source of a key yielded bytes that are not a key.
    static func unusableKey(_ message: String, hint: String? = nil) -> Failure {
        Failure(message: message, hint: hint, code: "invalidKey", status: 400, exit: .keyUnavailable)
    }

    /// Something that is to be stored is not what can be stored.
    static func invalidInput(_ message: String, in file: String, line: Int) -> Failure {
        Failure(
            message: "\(file):\(line): \(message)", code: "invalidJSON", status: 400, exit: .failed,
            place: Place(file: file, line: line))
    }

    /// The system refused to read or write `subject`. `number` is its `errno`.
    static func system(_ number: Int32, _ subject: String) -> Failure {
        let reason = unsafe strerror(number).map { unsafe String(cString: $0) } ?? "error \(number)"
        let isFull = number == ENOSPC || number == EDQUOT
        return Failure(
            message: "\(subject): \(reason)", hint: [EACCES, EPERM].contains(number) ? Owner.hint : nil,
            code: isFull ? "noSpace" : "ioFailed", status: isFull ? 507 : 500, exit: isFull ? .noSpace : .failed)
    }

    /// There is no folder and no list at `path`.
    static func noFolder(at path: String) -> Failure {
        Failure(message: "\(path): there is no such folder", code: "databaseNotFound", status: 404, exit: .noStore)
    }

    static func noStores(at path: String) -> Failure {
        Failure(
            message: "\(path): there is no such folder or list", code: "databaseNotFound", status: 404, exit: .noStore)
    }

    /// Nobody reads standard output any more, as with `coffer ls … | head`. It goes without saying.
    static let readerGone = Failure(
        message: "standard output: nobody reads it any more", code: "ioFailed", status: 500, exit: .readerGone)

    /// Somebody pressed ^C, or ended the process in another orderly way.
    static let cancelled = Failure(
        message: "cancelled, and nothing was changed", code: "cancelled", status: 499, exit: .cancelled)
}

extension Failure {
    /// What members of JSON say of it.
    func add(to line: inout JSONLine) {
        line.add("status", status)
        line.add("code", code)
        line.add("exit", Int(exit.rawValue))
        line.add("message", message)
        if let hint { line.add("hint", hint) }
        if let place {
            line.add("file", place.file)
            line.add("line", place.line)
        }
    }

    /// The same failure, of what stands on a line of a file.
    func `in`(_ file: String, line: Int) -> Failure {
        var failure = about("\(file):\(line)")
        failure.place = Place(file: file, line: line)
        return failure
    }

    /// The same failure, with what it happened to before its message, unless that names it already.
    func about(_ subject: String) -> Failure {
        guard !message.hasPrefix(subject) else { return self }
        return Failure(
            message: "\(subject): \(message)", hint: hint, code: code, status: status, exit: exit, place: place)
    }
}

extension Failure {
    /// An error of Foundation's about `subject`, in the words of the system where it has them.
    init(describing error: any Error, subject: String) {
        var next: (any Error)? = error
        while let current = next {
            if let posix = current as? POSIXError {
                self = .system(posix.code.rawValue, subject)
                return
            }
            next = (current as NSError).userInfo[NSUnderlyingErrorKey] as? any Error
        }
        self.init(
            message: "\(subject): \((error as NSError).localizedDescription)", code: "ioFailed", status: 500,
            exit: .failed)
    }
}

/// How the command ends, as scripts see it. These numbers do not change between versions.
enum ExitStatus: Int32, Codable {
    case ok = 0
    /// What was asked for did not happen, for a reason that has no number of its own; a missing document is one.
    case failed = 1
    case partlyDone = 3
    case noStore = 10
    case busy = 11
    case wrongKey = 12
    case keyUnavailable = 13
    case encryptionUnavailable = 14
    case damaged = 26
    case noSpace = 28
    case usage = 64
    /// Cancelled, and the store is as it was.
    case cancelled = 130
    /// Nobody reads standard output any more. The process ends by SIGPIPE, as it would have if it had not noticed.
    case readerGone = 141

    /// Ends the process with this status.
    func endProcess() -> Never {
        if self == .readerGone {
            _ = signal(SIGPIPE, SIG_DFL)
            raise(SIGPIPE)
        }
        exit(rawValue)
    }
}

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

/// What is wrong with one store of many.
extension Failure {
    init(ofOneStore error: any Error, _ path: String) {
        let failure =
            switch error {
            case let failure as Failure: failure
            case let error as CofferError: Failure(error, of: path)
            default: Failure(describing: error, subject: path)
            }
        self = failure.about(Console.printable(path))
    }

    /// The store's line among the results.
    func storeLine(_ path: String) -> String {
        var line = JSONLine(type: "store")
        line.add("path", path)
        add(to: &line)
        return line.finished
    }
}

extension Failure {
    /// A store without encryption, where keys are needed.
    static let notEncrypted = Failure(
        message: "it is not encrypted", hint: "coffer encrypt encrypts it", code: "notEncrypted", status: 401,
        exit: .wrongKey)
}

#if Sync
extension Failure {
    /// An error of a server, or of the way there. None of them is about the key of a store.
    init(_ error: SyncError, at server: String? = nil) {
        let (code, hint) = Self.meaning(of: error)
        self.init(
            message: (server.map { "\($0): " } ?? "") + error.description, hint: hint, code: code,
            status: error.status, exit: .failed)
    }

    private static func meaning(of error: SyncError) -> (code: String, hint: String?) {
        switch error.status {
        case 400: ("badRequest", nil)
        case 401:
            (
                "serverUnauthorized",
                "the server refused the user; this is not about the store's key: --user NAME, and --password SOURCE"
            )
        case 403: ("serverForbidden", nil)
        case 404: ("serverNotFound", nil)
        case 495: ("serverUntrusted", "--trust FILE names the certificates that must have signed its certificate")
        case 503, 504: ("serverUnreachable", nil)
        default: ("serverFailed", nil)
        }
    }
}
#endif
