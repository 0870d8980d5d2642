internal import CofferVault

/// The result of a change of the encryption key, fit for a log of rotations. It holds no key and no content.
public struct KeyChangeResult: Sendable, Codable {
    /// The store's generation before.
    public let oldGeneration: Int
    /// The store's generation now, one more.
    public let newGeneration: Int
    /// The keys that open the store now: the new one first, then those that were kept. None when it is not encrypted.
    public let keys: [StoreInfo.KeySlot]
    /// The keys that opened the store before and were not kept: the one that it was opened with, and those dropped.
    public let endedKeys: [StoreInfo.KeySlot]
    /// How many documents there are, not counting deleted ones.
    public let documentCount: Int
    /// How many contents of attachments and blobs were re-encrypted; each counts once, however many revisions use it.
    public let attachmentCount: Int
    /// The bytes of these contents.
    public let attachmentByteCount: Int
    /// The length of the new database file in bytes.
    public let databaseByteCount: Int
    /// How long it took.
    public let duration: Duration
    /// Whether everything under the old key is gone from the store's directory by now, durably. Otherwise somebody still
    /// reads there, or has not saved what was staged before; it goes when they end, or at the next opening. Or it can't be
    /// removed: see ``oldGenerations``.
    public let oldGenerationIsGone: Bool
    /// What was still in the store's directory beside the new generation when the call returned: the old one, and those
    /// that couldn't be removed before. Empty when all is gone.
    public let oldGenerations: [OldGeneration]
    /// The fate of the key that the database had been opened with.
    public let formerKey: FormerKey

    /// The fate of a key, determined by trying it on the store's new MANIFEST as it is on the disk.
    public enum FormerKey: String, Sendable, Codable {
        /// It does not open the store any more; for a store that was not encrypted: without a key it does not open.
        case refused
        /// It still opens the store, since it is the new key too, or was kept.
        case stillOpens
    }
}
