internal import Coffer
internal import CofferSealing

/// A store of Couchbase Lite that is open for reading: its database, under the key that opens it, and its attachments.
struct Source {
    let database: SharedSourceDatabase
    let attachments: AttachmentFiles
    let isEncrypted: Bool
    private let files: SourceFiles

    /// - Throws: `wrongKey`, `keyRequired` and `notEncrypted` (401), and what opening its files throws.
    init(
        _ location: SourceLocation, _ key: SymmetricKey?, _ options: CouchbaseLiteImportOptions, scratchPath: String,
        _ monitor: ImportMonitor
    ) throws(CofferError) {
        files = try SourceFiles(location, scratchPath: scratchPath, monitor: monitor)
        let subject = location.subject
        isEncrypted = !files.isPlain
        let candidates = try key?.candidates(options.keyDerivations) ?? []
        if files.isPlain {
            // The removal of a key may have been interrupted between the database and the attachments.
            guard key == nil || AttachmentFiles.isMarked(location.attachments) else {
                throw CofferError(.notEncrypted, of: subject, "it is not encrypted; import it without a key")
            }
            guard let database = try SourceDatabase.open(files, subject: subject, key: nil) else {
                throw CofferError(.damaged, of: subject, "its first page is damaged")
            }
            self.database = SharedSourceDatabase(database)
            attachments = AttachmentFiles(location.attachments, keys: candidates, monitor: monitor)
            return
        }
        guard key != nil else {
            throw CofferError(.keyRequired, of: subject, "it is encrypted, or its first page is damaged")
        }
        for candidate in candidates {
            try monitor.checkCancelled()
            guard let database = try SourceDatabase.open(files, subject: subject, key: candidate) else { continue }
            self.database = SharedSourceDatabase(database)
            attachments = AttachmentFiles(location.attachments, keys: [candidate], monitor: monitor)
            return
        }
        throw CofferError(
            .wrongKey, of: subject,
            "this key can't read its first page; a damaged first page, or another program's file, looks the same"
        )
    }

    func close() { database.withLock { $0.close() } }

    /// - Throws: `busy` (503).
    func checkUnchanged() throws(CofferError) { try files.checkUnchanged() }
}
