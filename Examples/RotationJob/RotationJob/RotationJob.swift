import Coffer

/// Gives every database of a folder a new key, one after another, and says what came of each.
///
/// It may be stopped at any time and run again: each database has the old key or the new one, never both and never neither.
public struct RotationJob: Sendable {
    /// What came of one database.
    public enum Outcome: Sendable, Equatable, CustomStringConvertible {
        /// It has the new key from now on.
        case rotated(documentCount: Int, attachmentCount: Int)
        /// An earlier run gave it the new key.
        case alreadyRotated
        /// Neither key opens it: 401.
        case unauthorized
        /// Another process has it open: 503. Worth another run.
        case busy
        /// Something else kept it as it was, or has to be looked at, which the status says.
        case failed(status: Int)

        /// The outcome in words, for a log.
        public var description: String {
            switch self {
            case .rotated(let documentCount, let attachmentCount):
                "rotated, with \(documentCount) documents and \(attachmentCount) attachments"
            case .alreadyRotated: "had the new key already"
            case .unauthorized: "neither key opens it (401)"
            case .busy: "another process has it open (503)"
            case .failed(let status): "not rotated (\(status))"
            }
        }

        /// Whether the new key, and no other, opens the database now.
        public var isDone: Bool {
            switch self {
            case .rotated, .alreadyRotated: true
            case .unauthorized, .busy, .failed: false
            }
        }
    }

    private let manager: Manager
    private let oldKey: SymmetricKey
    private let newKey: SymmetricKey

    /// A rotation of the databases of `manager` from one key to another.
    public init(manager: Manager, oldKey: SymmetricKey, newKey: SymmetricKey) {
        self.manager = manager
        self.oldKey = oldKey
        self.newKey = newKey
    }

    /// Rotates all databases of the folder.
    ///
    /// - Parameter report: told of each database as soon as it is done.
    /// - Returns: whether the new key opens all of them now.
    /// - Throws: `ioFailed` (500) where the folder can't be read. What happens to one database is its outcome.
    public func run(report: (_ name: String, Outcome) -> Void) throws(CofferError) -> Bool {
        var areDone = true
        for name in try manager.allDatabaseNames {
            let outcome = rotate(name)
            areDone = areDone && outcome.isDone
            report(name, outcome)
        }
        return areDone
    }

    private func rotate(_ name: String) -> Outcome {
        do throws(CofferError) {
            let database = try open(name, oldKey)
            let result = try database.changeEncryptionKey(to: newKey)
            try? database.close()
            return .rotated(documentCount: result.documentCount, attachmentCount: result.attachmentCount)
        } catch {
            switch error.status {
            case 401: return hasNewKey(name) ? .alreadyRotated : .unauthorized
            case 503: return .busy
            default: return .failed(status: error.status)
            }
        }
    }

    private func hasNewKey(_ name: String) -> Bool {
        guard let database = try? open(name, newKey) else { return false }
        try? database.close()
        return true
    }

    private func open(_ name: String, _ key: SymmetricKey) throws(CofferError) -> Database {
        var options = DatabaseOptions()
        options.encryptionKey = key
        // A database that was exchanged for an unencrypted one is a 401, too.
        options.requiresEncryption = true
        return try manager.openDatabase(named: name, options: options)
    }
}
