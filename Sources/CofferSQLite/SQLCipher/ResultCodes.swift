internal import CSQLCipher
internal import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

extension DatabaseHandle {
    /// What SQLite's result `code` means here, said of the database file.
    ///
    /// A wrong key of a store never reaches this point: the manifest has proven the key before a connection is made. So a file
    /// that "is not a database" is a damaged one. For another library's file, the key may be wrong: see ``NotADatabase``.
    func error(_ code: Int32) -> CofferError {
        let primary = code & 0xFF
        let extended = unsafe pointer.map { unsafe sqlcipher_extended_errcode($0) } ?? code
        let reason = unsafe "SQLite \(extended): " + String(cString: sqlcipher_errstr(primary))
        // SQLCipher's export reports an interrupt of a statement within it as an error like any other.
        if question?.hasStopped == true && primary == Int32(SQLCIPHER_ERROR) {
            return CofferError(.cancelled, of: subject, reason)
        }
        switch Int(primary) {
        case SQLCIPHER_NOTADB, SQLCIPHER_CORRUPT, SQLCIPHER_CONSTRAINT, SQLCIPHER_MISMATCH:
            // Nothing here breaks a constraint on purpose, or counts with something that is not a number: two tables
            // that should agree do not.
            return CofferError(
                .damaged, of: subject, reason, cause: primary == Int32(SQLCIPHER_NOTADB) ? NotADatabase() : nil)
        case SQLCIPHER_ERROR:
            // Statements here are literals that were tested, so this is a schema that is not ours, or a page whose check
            // failed earlier on this connection. SQLite's own words name tables and columns, never values.
            let words = unsafe pointer.map { unsafe String(cString: sqlcipher_errmsg($0)) } ?? reason
            return CofferError(.damaged, of: subject, words)
        case SQLCIPHER_BUSY, SQLCIPHER_LOCKED:
            return CofferError(.busy, of: subject, reason)
        case SQLCIPHER_FULL:
            return CofferError(.noSpace, of: subject, reason)
        case SQLCIPHER_READONLY:
            return CofferError(.readOnly, of: subject, reason)
        case SQLCIPHER_TOOBIG:
            return CofferError(.invalidArgument, of: subject, reason)
        case SQLCIPHER_INTERRUPT:
            return CofferError(.cancelled, of: subject, reason)
        default:
            let number = unsafe pointer.map { unsafe sqlcipher_system_errno($0) } ?? 0
            // After a sync that failed, also for want of space, nobody knows what of the commit is on the disk.
            let isSync = [SQLCIPHER_IOERR_FSYNC, SQLCIPHER_IOERR_DIR_FSYNC].contains(Int(extended))
            if !isSync && (number == ENOSPC || number == EDQUOT) { return CofferError(.noSpace, of: subject, reason) }
            let system = number == 0 ? "" : unsafe ", " + String(cString: strerror(number))
            return CofferError(
                .ioFailed, of: subject, reason + system,
                cause: primary == Int32(SQLCIPHER_IOERR) ? UnreadableBytes() : nil)
        }
    }
}

/// Why an error is `ioFailed`: the disk did not give bytes back that should be there, or did not take them. Not that
/// there was no memory, or no descriptor.
package struct UnreadableBytes: Error {}

/// Why an error is `damaged`: the first page is not one of a database, or it was encrypted under another key.
package struct NotADatabase: Error {}
