public import Foundation

/// One of the keys that open a database, as ``Database/keys`` lists them. It holds no secret.
public struct DatabaseKey: Sendable, Equatable, Identifiable, Codable {
    /// The key's name in its database: 16 lower-case hex digits.
    public let id: String

    /// The kind of key, and the cost of using it.
    public let kind: StoreInfo.KeySlot.Kind

    /// The label that it got when it was added; nil without one.
    public let label: String?

    /// When it was added or took another's place, in whole seconds.
    public let created: Date

    /// Whether all that the database holds was encrypted when this key was there already: it was created with it, or
    /// ``Database/changeEncryptionKey(to:keeping:droppingOtherKeys:keyedNames:progress:)`` was given it. False for one that was
    /// added or took another's place since, so that whoever had another key before may know the database's own. True where
    /// a version of Coffer that did not note it made the database.
    public let isOriginal: Bool

    /// Whether the database was opened by it in this process.
    public let isCurrent: Bool
}
