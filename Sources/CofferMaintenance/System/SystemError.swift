internal import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

enum SystemError {
    /// What the system says to an error number (strerror(3)), and of what.
    static func failure(_ number: Int32, _ subject: String) -> CofferError {
        let reason = unsafe strerror(number).map { unsafe String(cString: $0) } ?? "error \(number)"
        return CofferError(number == ENOSPC ? .noSpace : .ioFailed, of: subject, reason)
    }
}
