@_spi(Tool) public import Coffer
@_spi(Tool) public import Foundation

/// What only whoever has opened a database knows of it.
@_spi(Tool) public struct DatabaseDescription: Codable, Sendable {
    /// The database's own UUID.
    public let uuid: UUID?
    /// The keys; `DatabaseKey.isCurrent` is said of the one that it was opened with, here or by whoever asked.
    public let keys: [DatabaseKey]
    /// What is left of earlier generations of the store.
    public let oldGenerations: [OldGeneration]

    /// That description.
    public init(uuid: UUID?, keys: [DatabaseKey], oldGenerations: [OldGeneration]) {
        (self.uuid, self.keys, self.oldGenerations) = (uuid, keys, oldGenerations)
    }
}

/// How much is in a database.
@_spi(Tool) public struct DatabaseCounts: Codable, Sendable {
    /// Documents, deleted ones not counted.
    public let documentCount: Int
    /// The sequence of the last revision that was saved.
    public let lastSequence: Int
    /// Contents of attachments and blobs that were left out by a pull.
    public let missingContentCount: Int

    /// Counts a database. May take as long as counting does.
    public init(_ database: Database) throws(CofferError) {
        documentCount = try database.documentCount
        lastSequence = try database.lastSequenceNumber
        missingContentCount = try database.missingContentCount
    }
}

/// Which keys a database is to have.
@_spi(Tool) public struct KeyChangeOrder: Sendable {
    /// The new key.
    public let newKey: SymmetricKey
    /// Other keys that should still open it.
    public let keptKeys: [SymmetricKey]
    /// Whether keys that are not given may end.
    public let dropsOtherKeys: Bool
    /// Whether attachment files are named by a keyed digest; nil for as before.
    public let keyedNames: Bool?

    /// That order.
    public init(newKey: SymmetricKey, keptKeys: [SymmetricKey], dropsOtherKeys: Bool, keyedNames: Bool? = nil) {
        (self.newKey, self.keptKeys) = (newKey, keptKeys)
        (self.dropsOtherKeys, self.keyedNames) = (dropsOtherKeys, keyedNames)
    }
}
