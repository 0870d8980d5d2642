internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import Synchronization

extension Database {
    // MARK: Your own types

    /// Saves a value as a document's next revision.
    ///
    /// Dates are stored as text in RFC 3339, in UTC and without loss down to the nanosecond; `Data` as base64; integers
    /// exactly.
    ///
    /// - Parameters:
    ///   - value: what encodes to a JSON object.
    ///   - id: the document's id. Default: one that nobody else has.
    ///   - revisionID: the revision that this one replaces, which must be the current one. Default: nil; then there must be
    ///     no such document.
    /// - Returns: the revision that it became.
    /// - Throws: `invalidJSON` (400) for a value that is not a JSON object, has more than 1,048,576 values in it or 64 MiB
    ///   as JSON, or holds a number that is not finite; what the value itself throws as it encodes; and as
    ///   `saveDocument(_:concurrencyControl:)`.
    @discardableResult
    public func save(
        _ value: some Encodable, withID id: String? = nil, replacing revisionID: RevisionID? = nil
    ) throws -> SavedRevision {
        try draft(of: value, id, revisionID).save()
    }

    /// Reads a document as your own type, lets `change` change it, and saves it, all in one transaction: nobody can
    /// save it in between.
    ///
    /// - Returns: the revision that it became.
    /// - Throws: `documentNotFound` (404), `DecodingError` when it does not fit, what `change` throws, and as
    ///   `saveDocument(_:concurrencyControl:)`. Nothing is saved then.
    @discardableResult
    public func update<Value: Codable>(
        _ id: String, as type: Value.Type = Value.self, _ change: (inout Value) throws -> Void
    ) throws -> SavedRevision {
        try inTransaction {
            let document = document(withID: id)
            guard let current = try document.currentRevision else {
                throw CofferError(.documentNotFound, of: document.subject)
            }
            var value = try current.decode(type)
            try change(&value)
            return try save(value, withID: id, replacing: current.revisionID)
        }
    }
}

extension Document {
    /// The current revision's properties as your own type.
    ///
    /// - Throws: `documentNotFound` (404) if it doesn't exist or is deleted; `DecodingError` when it does not fit.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        guard let revision = try currentRevision else { throw CofferError(.documentNotFound, of: subject) }
        return try revision.decode(type)
    }
}

extension SavedRevision {
    /// The properties as your own type.
    ///
    /// - Throws: `DecodingError` when they do not fit; as ``json``.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        do {
            let storage = database.storage
            return try Value(
                canonical: try body,
                userInfo: [
                    BlobCoding.key: BlobCoding(
                        prepare: { _ in }, resolve: { reference in Blob(reference, in: storage) })
                ])
        } catch let error as CofferError {
            throw error.about(document.subject)
        }
    }
}

extension Database {
    func draft(of value: some Encodable, _ id: String?, _ revisionID: RevisionID?) throws -> PreparedRevision {
        let contents = Lock<[StagedContent]>([])
        let storage = storage
        @Sendable func stage(_ blob: Blob) throws {
            let staged = try StagedContent.stage([blob], in: storage)
            contents.withLock { $0 += staged }
        }
        let body = try DocumentBody(
            encoding: value,
            userInfo: [
                BlobCoding.key: BlobCoding(prepare: stage, resolve: { reference in Blob(reference, in: storage) })
            ])
        return try draft(of: body, id, revisionID, staged: contents.withLock { $0 })
    }
}
