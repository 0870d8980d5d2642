internal import Foundation

/// What one line of a file of receipts says, as far as others are made of it.
struct ReceiptRecord: Decodable, Sendable {
    enum Kind: String, Decodable {
        /// A run of `coffer rotate` begins.
        case run
        /// A store is about to get another key.
        case begun
        /// What became of a store.
        case done
        /// A run has come to its end.
        case end
    }

    let type: Kind
    /// The run that wrote the line.
    let run: String

    // Of a run.

    /// What the run is part of: the first of those that each resume the one before.
    let rotation: String?

    // Of a store.

    let path: String?
    /// The store's, which copies share.
    let uuid: String?
    let generation: Int?
    /// A word of a receipt: see ``RotationReceipt``.
    let outcome: String?
    /// The run that had begun the store and did not live to write what became of it.
    let completes: String?

    /// Which store of which place; nil if the line is of none, or of one that could not be read.
    var store: ReceiptStore? {
        guard let path, let uuid else { return nil }
        return ReceiptStore(path: path, uuid: uuid)
    }

    /// Whether the store has the new key alone since.
    var isSettled: Bool { type == .done && ["rotated", "alreadyRotated"].contains(outcome) }

    /// - Returns: nil if the line is not such a record.
    init?(line: Data) {
        guard let record = try? JSONDecoder().decode(ReceiptRecord.self, from: line) else { return nil }
        self = record
    }
}

/// A store at a place: copies have the same UUID, and another store may take the place.
struct ReceiptStore: Hashable, Sendable {
    /// Absolute.
    let path: String
    let uuid: String
}

/// A store that is about to get another key: what is written before.
struct StoreBeginning: Codable, Sendable {
    let path: String
    let uuid: String
    /// The database's own, which tells copies apart.
    let databaseUUID: String?
    let generation: Int

    var store: ReceiptStore { ReceiptStore(path: path, uuid: uuid) }
}
