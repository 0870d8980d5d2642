internal import Foundation

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
