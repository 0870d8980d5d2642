internal import ArgumentParser
internal import Coffer

/// A storage engine, as a command line names it.
enum StorageArgument: String, ExpressibleByArgument, CaseIterable {
    case sqlite, sealed

    var type: StorageType {
        switch self {
        case .sqlite: .sqlite
        case .sealed: .sealed
        }
    }
}

extension StoreInfo {
    /// What keeps the database, in a word.
    var engine: String {
        if storageType == .sealed { return "Sealed" }
        return isEncrypted ? "SQLCipher" : "SQLite"
    }
}
