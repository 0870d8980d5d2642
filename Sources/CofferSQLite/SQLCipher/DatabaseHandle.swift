internal import CSQLCipher
internal import CofferSealing
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The C object of a ``Connection``, and what it and its statements share. Only this folder sees it.
@safe final class DatabaseHandle {
    /// What errors say that they happened to.
    let subject: String

    /// What the file's pages are sealed by. They stay for as long as the connection.
    var sealedPages: SealedPages?

    /// Which thread is inside. Whatever calls SQLite enters it first.
    let occupancy: Occupancy

    /// The C object. Nil once closed; nothing but ``Connection`` and ``Statement`` uses it. Not checked for exclusive use: see
    /// ``PreparedStatement``.
    @exclusivity(unchecked) var pointer: OpaquePointer?

    /// Prepared statements that must be freed before the connection closes, and some that are gone.
    private var statements: [WeakStatement] = []
    /// How many of them there may be before those that are gone are taken out.
    private var statementLimit = 128

    /// What long statements ask while they run: see ``Connection/ask(_:)``.
    var question: ProgressQuestion?

    /// Frames in the write-ahead log after the last commit on this connection, 0 if it made none since the log was emptied.
    var logFrameCount = 0

    init(subject: String) {
        self.subject = subject
        occupancy = Occupancy(subject: subject)
    }

    // Errors of a close that nobody asked for could be told to nobody.
    deinit { try? close() }

    /// Finalizes all statements and closes. Does nothing the second time.
    func close() throws(CofferError) {
        guard let open = unsafe pointer else { return }
        let isEntered = occupancy.enter()
        defer { if isEntered { occupancy.leave() } }
        for weak in statements { weak.statement?.finalize() }
        statements = []
        let code = unsafe sqlcipher_close(open)
        guard code == Int32(SQLCIPHER_OK) else { throw error(code) }
        unsafe pointer = nil
    }

    /// Lets go of the C object without closing it. A transaction under way is undone.
    func abandon() {
        // Its lock would last as long as the process, and nobody in it could open the store for writing again. Undoing writes
        // nothing: frames in the log without a commit don't count.
        if let open = unsafe pointer, unsafe sqlcipher_get_autocommit(open) == 0 {
            _ = unsafe sqlcipher_exec(open, "ROLLBACK", nil, nil, nil)
        }
        statements = []
        unsafe pointer = nil
    }

    /// Has the statement freed before the connection closes, should it live that long.
    func adopt(_ statement: PreparedStatement) {
        if statements.count >= statementLimit {
            statements.removeAll { $0.statement == nil }
            statementLimit = max(statementLimit, 2 * statements.count)
        }
        statements.append(WeakStatement(statement: statement))
    }

    /// How many statements are kept account of, for tests.
    var adoptedStatementCount: Int { statements.count }
}

private struct WeakStatement {
    weak var statement: PreparedStatement?
}

/// Which thread is inside a connection. Stops the process when a second one enters: a damaged store would be worse.
///
/// A thread is inside for the length of a call, or of a loan of several: then calls cost one comparison, and a second thread
/// is noticed between them too. SQLite's own mutexes are no substitute, since two threads in one transaction are wrong with
/// them as well. Always on: a call outside of a loan costs a compare-and-swap and a store.
final class Occupancy: Sendable {
    /// The thread inside, 0 for none. A thread finds its own identity here only if it put it there.
    private let thread = Atomic<UInt>(0)
    private let subject: String

    init(subject: String) { self.subject = subject }

    /// Enters, unless the calling thread is inside already.
    ///
    /// - Returns: whether it entered, and so has to ``leave()``.
    @inline(__always)
    func enter() -> Bool {
        let caller = threadIdentity()
        if thread.load(ordering: .relaxed) == caller { return false }
        if !thread.compareExchange(expected: 0, desired: caller, ordering: .acquiring).exchanged { stop() }
        return true
    }

    /// Enters; the calling thread must not be inside.
    func occupy() { if !enter() { fatalError("a loan of \(subject) within a loan") } }

    /// Leaves, on the thread that entered.
    @inline(__always)
    func leave() { thread.store(0, ordering: .releasing) }

    @inline(never)
    private func stop() -> Never {
        fatalError(
            "two threads use one connection of \(subject): Coffer stops the process before that damages the store")
    }
}

#if canImport(Glibc)
private func threadIdentity() -> UInt { UInt(pthread_self()) }
#else
private func threadIdentity() -> UInt { UInt(bitPattern: pthread_self()) }
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
