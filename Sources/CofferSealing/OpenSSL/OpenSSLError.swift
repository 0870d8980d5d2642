internal import COpenSSL

extension CofferError {
    /// OpenSSL could not do `task`: the algorithm or the memory is missing on this system. Never a wrong key.
    ///
    /// Empties this thread's error queue; the reasons, which are fixed texts without data, become the detail.
    static func openSSLFailed(_ task: String) -> CofferError {
        let reasons = drainOpenSSLErrors()
        return CofferError(
            .encryptionUnavailable, (["OpenSSL can't do \(task)"] + reasons).joined(separator: ": "))
    }
}

/// Empties this thread's OpenSSL error queue and returns the reasons, oldest first.
@discardableResult
func drainOpenSSLErrors() -> [String] {
    var reasons: [String] = []
    while case let code = ERR_get_error(), code != 0 {
        reasons.append(unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) } ?? "error \(code)")
    }
    return reasons
}
