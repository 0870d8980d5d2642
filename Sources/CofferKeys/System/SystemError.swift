#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

enum SystemError {
    /// What the system says to an error number (strerror(3)), and of what.
    static func message(_ number: Int32, _ subject: String) -> String {
        guard let reason = unsafe strerror(number) else { return "\(subject): error \(number)" }
        return unsafe "\(subject): \(String(cString: reason))"
    }
}
