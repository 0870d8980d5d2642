internal import Coffer
internal import Foundation

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
