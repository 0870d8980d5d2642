internal import CofferRecords
internal import CofferSealing
internal import CofferVault

/// A storage engine's name: `.sqlite` or `.sealed`, or as text, `"SQLite"` or `"Sealed"`.
///
/// Both keep the same documents in the same way, and promise the same; all else works alike. They differ in the pages of the
/// database file.
public struct StorageType: RawRepresentable, Hashable, Sendable, Codable, ExpressibleByStringLiteral {
    /// The engine's name, such as `SQLite`.
    public let rawValue: String

    /// Names an engine. One that is not built in is a 406 where it is used.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Names an engine by a literal: see ``init(rawValue:)``.
    public init(stringLiteral name: String) { self.init(rawValue: name) }

    /// SQLite: through SQLCipher where the database is encrypted. The default.
    ///
    /// Every SQLCipher since version 3 opens such a file, given the database's own key: docs/FORMAT.md says how it is had.
    public static let sqlite = StorageType(rawValue: "SQLite")

    /// SQLite on pages that Coffer seals itself, with AES-256-GCM. Only for encrypted databases.
    ///
    /// Faster where pages are not in memory, and for readers beside a writer: all share one cache, which commits don't empty.
    /// It needs no SQLCipher, and leaves nothing of the database file readable, the header neither. **No other program opens
    /// such a file**; ``Database/convert(to:)`` makes either of the other.
    public static let sealed = StorageType(rawValue: "Sealed")
}

extension StorageType {
    /// The engine of the store.
    init(of manifest: Manifest) { self = manifest.databaseProfile == .sealedPages ? .sealed : .sqlite }

    /// How the engine keeps databases that are encrypted.
    ///
    /// - Throws: `storageTypeUnavailable` (406) for a name that no engine has.
    var encryptedProfile: Manifest.DatabaseProfile {
        get throws(CofferError) {
            switch self {
            case .sqlite: .portableSQLCipher
            case .sealed: .sealedPages
            default:
                throw CofferError(.storageTypeUnavailable, "there is no engine \(rawValue) in this build")
            }
        }
    }

    /// - Throws: `storageTypeUnavailable` (406) unless the engine can keep a database that is encrypted, or isn't.
    func check(isEncrypted: Bool) throws(CofferError) {
        if try encryptedProfile == .sealedPages, !isEncrypted {
            throw CofferError(.storageTypeUnavailable, "sealed pages need a key, and without one there is only SQLite")
        }
    }
}

extension DatabaseLibrary {
    /// - Throws: `encryptionUnavailable` (501) unless the library that is loaded can keep a database like that.
    static func require(for profile: Manifest.DatabaseProfile) throws(CofferError) {
        if profile == .portableSQLCipher { try requireEncryption() }
    }
}
