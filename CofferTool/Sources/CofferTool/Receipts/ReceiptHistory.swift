internal import Foundation
internal import Coffer

/// What the lines of a file of receipts come to.
struct ReceiptHistory: Sendable {
    struct Pending: Sendable {
        let run: String
        /// What the run is part of.
        let rotation: String?
        let generation: Int
    }

    /// Stores that were begun, of which nothing is known since.
    private(set) var pending: [ReceiptStore: Pending] = [:]

    /// Of the last rotation, the stores that have the new key alone, and the generation that it made.
    private(set) var settled: [ReceiptStore: Int] = [:]

    /// The last rotation.
    private(set) var rotation: String?

    private(set) var runCount = 0
    private(set) var rotatedCount = 0
    private(set) var failedCount = 0

    mutating func add(_ record: ReceiptRecord) {
        switch record.type {
        case .run:
            runCount += 1
            if record.rotation != rotation { settled = [:] }
            rotation = record.rotation
        case .begun:
            guard let store = record.store, let generation = record.generation else { return }
            pending[store] = Pending(run: record.run, rotation: rotation, generation: generation)
        case .done:
            if record.outcome == "failed" { failedCount += 1 }
            guard let store = record.store else { return }
            if record.outcome == "rotated" || record.completes != nil { rotatedCount += 1 }
            if let begun = pending[store],
                record.outcome == "rotated" || [record.run, record.completes].contains(begun.run)
            {
                pending[store] = nil
            }
            if record.isSettled { settled[store] = record.generation }
        case .end: break
        }
    }

    /// The run whose change of a store was found to have been made; nil if none was begun, or nothing came of it.
    ///
    /// - Parameter generation: what the store has now.
    func unfinishedRun(of store: ReceiptStore, at generation: Int) -> String? {
        pending[store].flatMap { $0.generation + 1 == generation ? $0.run : nil }
    }
}

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

/// A rotation that a run goes on with, as far as its receipts tell of it. They don't tell which key the new one was.
struct ResumedRotation: Sendable {
    private let history: ReceiptHistory

    init(_ history: ReceiptHistory) { self.history = history }

    /// Whether an earlier run has dealt with the store, which has not been changed since.
    func hasSettled(_ path: String) -> Bool {
        guard let store = Store(path) else { return false }
        return history.settled[store.place] == store.info.generation
    }

    /// Tries a new key on one of the stores that have the rotation's, wherever they are, and whoever has them open: MANIFEST
    /// alone is read.
    ///
    /// - Parameters:
    ///   - isNeeded: whether there are stores that would be changed.
    ///   - newKey: finds the new key of a store.
    /// - Throws: `anotherRotation` (409) where the key is another one, and where it is needed and cannot be told.
    func checkIsSame(
        isNeeded: Bool, _ newKey: (_ path: String, _ uuid: UUID) throws -> SymmetricKey
    ) throws {
        for (place, generation) in history.settled.sorted(by: { $0.key.path < $1.key.path }) {
            guard let store = Store(place.path), store.place == place, store.info.generation == generation else {
                continue
            }
            if let isSame = try store.isOpened(by: newKey) { return try Self.check(isSame, place.path) }
        }
        // A run that was killed may have changed a store, and not have said so.
        var isUntouched = history.settled.isEmpty
        for (place, begun) in history.pending where begun.rotation == history.rotation {
            let store = Store(place.path)
            let isThere = store?.place == place
            if isThere, store?.info.generation == begun.generation { continue }
            isUntouched = false
            guard isThere, let store, store.info.generation == begun.generation + 1 else { continue }
            if let isSame = try store.isOpened(by: newKey) { return try Self.check(isSame, place.path) }
        }
        guard isUntouched || !isNeeded else {
            throw Failure(
                message: "coffer can't tell whether this is the new key of the rotation to resume: "
                    + "no store that has it is unchanged in its place", hint: Self.hint, code: Self.code, status: 409,
                exit: .failed)
        }
    }

    private static func check(_ isSame: Bool, _ path: String) throws(Failure) {
        guard isSame else {
            throw Failure(
                message:
                    "\(Console.printable(path)): the rotation to resume gave it a new key, and this is a different one",
                hint: hint, code: code, status: 409, exit: .failed)
        }
    }

    private static let code = "anotherRotation"
    private static let hint = "give --receipts another file, or leave out --resume"

    /// A store that can be read.
    private struct Store {
        let path: StorePath
        let manager: Manager
        let info: StoreInfo

        init?(_ argument: String) {
            guard let path = try? StorePath(argument), let manager = try? Manager(directory: path.folder),
                let info = try? manager.storeInfo(named: path.databaseName)
            else { return nil }
            (self.path, self.manager, self.info) = (path, manager, info)
        }

        var place: ReceiptStore { ReceiptStore(path: path.path, uuid: info.storeUUID.uuidString.lowercased()) }

        /// Whether the key opens it; nil if it can't be read.
        func isOpened(by newKey: (_ path: String, _ uuid: UUID) throws -> SymmetricKey) throws -> Bool? {
            let key = try newKey(path.path, info.storeUUID)
            do throws(CofferError) {
                _ = try manager.keyBackup(ofDatabaseNamed: path.databaseName, encryptionKey: key)
                return true
            } catch {
                return [.wrongKey, .notEncrypted].contains(error.code) ? false : nil
            }
        }
    }
}
