internal import CSQLCipher
package import CofferSealing

/// One prepared statement, kept for the life of its connection and prepared when it first runs.
///
/// Bind, then call ``step()`` until it says false, then ``reset()``. Columns count from 0, parameters from 1. Not `Sendable`:
/// it belongs to whoever has its connection, and ``Occupancy`` stops the process where two threads do.
@safe package final class Statement {
    private unowned let connection: DatabaseHandle
    private let occupancy: Occupancy
    private let sql: StaticString
    private let prepared = PreparedStatement()

    /// - Parameter sql: a literal. Values are bound, never part of it.
    package init(_ connection: borrowing Connection, _ sql: StaticString) {
        self.connection = connection.handle
        occupancy = connection.handle.occupancy
        self.sql = sql
    }

    /// Frees the prepared statement; running it again prepares it again.
    package func finalize() {
        guard unsafe handle != nil else { return }
        let isEntered = occupancy.enter()
        defer { if isEntered { occupancy.leave() } }
        prepared.finalize()
    }

    deinit { finalize() }

    private var handle: OpaquePointer? { unsafe prepared.handle }

    private func prepare() throws(CofferError) -> OpaquePointer {
        if let handle = unsafe handle { return unsafe handle }
        guard let database = unsafe connection.pointer else { throw CofferError(.closed, of: connection.subject) }
        try check(
            unsafe sqlcipher_prepare_v2(database, sql.utf8Start, Int32(sql.utf8CodeUnitCount), &prepared.handle, nil))
        guard let handle = unsafe handle else {
            preconditionFailure("a statement without SQL")
        }
        if !prepared.isAdopted {
            prepared.isAdopted = true
            connection.adopt(prepared)
        }
        return unsafe handle
    }

    private func check(_ code: Int32) throws(CofferError) {
        // Most often there is no need to look at the connection, which would retain it.
        if code != Int32(SQLCIPHER_OK) { throw connection.error(code) }
    }

    // MARK: Parameters

    package func bind(_ index: Int32, _ value: Int64) throws(CofferError) {
        try check(unsafe sqlcipher_bind_int64(prepare(), index, value))
    }

    /// Binds an integer, or null.
    package func bind(_ index: Int32, _ value: Int64?) throws(CofferError) {
        if let value { try bind(index, value) } else { try bindNull(index) }
    }

    package func bindNull(_ index: Int32) throws(CofferError) {
        try check(unsafe sqlcipher_bind_null(prepare(), index))
    }

    package func bind(_ index: Int32, _ text: String) throws(CofferError) {
        let handle = unsafe try prepare()
        var text = text
        let code = text.withUTF8 { bytes in
            unsafe bytes.withMemoryRebound(to: CChar.self) { characters in
                unsafe sqlcipher_bind_text(
                    handle, index, characters.baseAddress, Int32(characters.count), sqlcipher_transient())
            }
        }
        try check(code)
    }

    /// Binds a copy of `bytes` as a blob.
    package func bind(_ index: Int32, _ bytes: [UInt8]) throws(CofferError) {
        let handle = unsafe try prepare()
        guard bytes.count <= Int(Int32.max) else {
            throw CofferError(.invalidArgument, of: connection.subject, "more than 2 GiB in one value")
        }
        guard !bytes.isEmpty else {
            return try check(unsafe sqlcipher_bind_zeroblob(handle, index, 0))
        }
        let code = unsafe bytes.withUnsafeBytes { buffer in
            unsafe sqlcipher_bind_blob(handle, index, buffer.baseAddress, Int32(buffer.count), sqlcipher_transient())
        }
        try check(code)
    }

    /// Binds a blob of 16 bytes, which are two numbers, big-endian: for digests, without allocating.
    package func bind(_ index: Int32, _ high: UInt64, _ low: UInt64) throws(CofferError) {
        let handle = unsafe try prepare()
        let code = unsafe withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { bytes in
            unsafe sqlcipher_bind_blob(handle, index, bytes.baseAddress, Int32(bytes.count), sqlcipher_transient())
        }
        try check(code)
    }

    /// Binds bytes as a blob without a copy: for secrets. They must stay until something else is bound.
    func bindUncopied(_ index: Int32, _ bytes: UnsafeRawBufferPointer) throws(CofferError) {
        let handle = unsafe try prepare()
        try check(
            unsafe sqlcipher_bind_blob(
                handle, index, bytes.baseAddress, Int32(bytes.count), sqlcipher_static()))
    }

    // MARK: Rows

    /// Goes on to the next row.
    ///
    /// - Returns: whether there is one.
    package func step() throws(CofferError) -> Bool {
        let isEntered = occupancy.enter()
        defer { if isEntered { occupancy.leave() } }
        let code = unsafe try sqlcipher_step(prepare())
        if code == Int32(SQLCIPHER_ROW) { return true }
        if code == Int32(SQLCIPHER_DONE) { return false }
        let failure = connection.error(code)
        reset()
        throw failure
    }

    /// Ends this run: locks are given back, and the statement can be bound and run again.
    package func reset() {
        let isEntered = occupancy.enter()
        defer { if isEntered { occupancy.leave() } }
        // The code repeats what the last step said.
        _ = unsafe sqlcipher_reset(handle)
    }

    /// Runs a statement that returns no rows, and resets it.
    package func run() throws(CofferError) {
        defer { reset() }
        _ = try step()
    }

    /// Runs the statement, and gives its first row, if any, to `body`.
    package func first<Value>(_ body: (Statement) throws(CofferError) -> Value) throws(CofferError) -> Value? {
        defer { reset() }
        return try step() ? body(self) : nil
    }

    /// Runs the statement, and collects what `body` makes of each of its rows.
    package func all<Value>(_ body: (Statement) throws(CofferError) -> Value) throws(CofferError) -> [Value] {
        defer { reset() }
        var values: [Value] = []
        while try step() { values.append(try body(self)) }
        return values
    }

    /// Rows that the last insert, update or delete of the connection changed: ask right after it ran.
    package var changedRowCount: Int { unsafe Int(sqlcipher_changes(connection.pointer)) }

    /// How many columns each of its rows has.
    package var columnCount: Int32 { unsafe sqlcipher_column_count(handle) }

    package func isNull(_ column: Int32) -> Bool {
        unsafe sqlcipher_column_type(handle, column) == Int32(SQLCIPHER_NULL)
    }

    package func isInteger(_ column: Int32) -> Bool {
        unsafe sqlcipher_column_type(handle, column) == Int32(SQLCIPHER_INTEGER)
    }

    package func isBlob(_ column: Int32) -> Bool {
        unsafe sqlcipher_column_type(handle, column) == Int32(SQLCIPHER_BLOB)
    }

    /// The integer in `column`, 0 for null.
    package func integer(_ column: Int32) -> Int64 {
        unsafe sqlcipher_column_int64(handle, column)
    }

    /// The text in `column`, empty for null.
    package func text(_ column: Int32) -> String { unsafe String(decoding: content(column), as: UTF8.self) }

    /// A copy of the blob or text in `column`, empty for null.
    package func bytes(_ column: Int32) -> [UInt8] { unsafe [UInt8](content(column)) }

    /// A copy of the blob or text in `column`; nil for null.
    package func bytesIfAny(_ column: Int32) -> [UInt8]? {
        let content = unsafe content(column)
        return unsafe content.isEmpty && isNull(column) ? nil : [UInt8](content)
    }

    /// Appends the blob or text in `column`.
    ///
    /// - Returns: false for null.
    @discardableResult
    package func append(_ column: Int32, to bytes: inout [UInt8]) -> Bool {
        let content = unsafe content(column)
        unsafe bytes.append(contentsOf: content)
        return unsafe !content.isEmpty || !isNull(column)
    }

    /// The blob of 16 bytes in `column` as two numbers, big-endian; nil for anything else. Allocates nothing.
    package func words(_ column: Int32) -> (high: UInt64, low: UInt64)? {
        guard isBlob(column), case let content = unsafe content(column), content.count == 16 else { return nil }
        let words = unsafe content.loadUnaligned(as: (UInt64, UInt64).self)
        return (UInt64(bigEndian: words.0), UInt64(bigEndian: words.1))
    }

    /// A blob, or text as UTF-8, in which Coffer's files have all of it: until the next step. Asked for as text, SQLite would
    /// copy it to put a zero behind it.
    private func content(_ column: Int32) -> UnsafeRawBufferPointer {
        // It has the bytes before it has their number.
        let start = unsafe sqlcipher_column_blob(handle, column)
        return unsafe UnsafeRawBufferPointer(start: start, count: Int(sqlcipher_column_bytes(handle, column)))
    }
}

/// SQLite's side of a statement, which its connection must free before it closes.
///
/// An object of its own, since the connection refers to it weakly: whatever is referred to so is slower to pass around.
@safe final class PreparedStatement {
    /// Read for every column of every row: the check that nobody else changes it meanwhile costs more than reading it, and who
    /// has the connection is the only one who may.
    @exclusivity(unchecked) fileprivate(set) var handle: OpaquePointer?

    /// Whether its connection frees it: from when it is first prepared, since most of those that are made never are.
    fileprivate var isAdopted = false

    deinit { finalize() }

    func finalize() {
        // The code repeats what the last step said.
        _ = unsafe sqlcipher_finalize(handle)
        unsafe handle = nil
    }
}
