package import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// What the operating system answered: the call and its `errno`.
package struct SystemError: Error, Sendable, Equatable, CustomStringConvertible {
    package let call: String
    package let number: Int32

    package init(call: String, number: Int32) {
        self.call = call
        self.number = number
    }

    /// Such as `fsync: Input/output error`.
    package var description: String {
        var message = [CChar](repeating: 0, count: 256)
        guard unsafe strerror_r(number, &message, message.count) == 0 else { return "\(call): error \(number)" }
        let bytes = message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return "\(call): \(String(decoding: bytes, as: UTF8.self))"
    }
}

extension CofferError {
    /// The error for what the system answered about `path`.
    package init(_ error: SystemError, at path: String) {
        let code: Code =
            switch error.number {
            case ENOSPC, EDQUOT: .noSpace
            case EROFS: .readOnly
            default: .ioFailed
            }
        self.init(code, of: path, error.description, cause: error)
    }

    /// The `errno` that led to this error, if one did.
    package var systemErrorNumber: Int32? { (cause as? SystemError)?.number }

    /// Whether there is nothing of the name that was to be used.
    var isMissing: Bool { systemErrorNumber == ENOENT }
}
