internal import CSQLCipher
internal import CofferSealing

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
