internal import CofferModel
package import CofferSealing
internal import CofferRecords

// What a listener tells of a database as a whole.
extension Database {
    /// How many documents are deleted, as long as they are not purged. Takes time in proportion to the number of documents.
    ///
    /// - Throws: `damaged` and `closed` (500).
    package var deletedDocumentCount: Int {
        get throws(CofferError) {
            try storage.read { (tables) throws(CofferError) in
                try tables.deletedDocumentCount()
            }
        }
    }

    /// How many bytes the database file has with its log, and all contents of attachments and blobs that are here. Takes time in
    /// proportion to the number of contents.
    ///
    /// - Throws: `damaged` and `closed` (500).
    package var sizes: (databaseByteCount: Int, contentByteCount: Int) {
        get throws(CofferError) {
            let file = storage.databaseFile
            let contents = try storage.read { (tables) throws(CofferError) in try tables.attachments.contentSum() }
            return (file.byteCount.addingSaturated(file.logByteCount), contents.byteCount)
        }
    }

    /// The ids of local documents with `_local/`, sorted by their bytes.
    ///
    /// - Parameters:
    ///   - id: only ids after this one. Default: nil, from the first.
    ///   - limit: how many at most.
    /// - Throws: `damaged` and `closed` (500).
    package func localDocumentIDs(after id: String? = nil, limit: Int) throws(CofferError) -> [String] {
        try storage.read { (tables) throws(CofferError) in
            try tables.localDocumentIDs(after: id ?? "", limit: limit)
        }
    }
}
