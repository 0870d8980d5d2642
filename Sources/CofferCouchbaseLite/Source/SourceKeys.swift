internal import CofferSealing

/// How Couchbase Lite 1.x derives the key of a database from a password.
///
/// Each uses PBKDF2 with the same salt; the hash and the number of rounds differ.
public struct CouchbaseLiteKeyDerivation: Sendable, Hashable, CaseIterable {
    private enum Function { case hmacSHA256, hmacSHA1, hmacSHA1With1024Rounds }

    private let function: Function

    /// iOS and macOS, and the releases for Android and Java: HMAC-SHA-256, 64,000 rounds.
    public static let hmacSHA256 = Self(function: .hmacSHA256)
    /// .NET: HMAC-SHA-1, 64,000 rounds.
    public static let hmacSHA1 = Self(function: .hmacSHA1)
    /// Builds for Android and Java from before release 1.2: HMAC-SHA-1, 1,024 rounds.
    public static let hmacSHA1With1024Rounds = Self(function: .hmacSHA1With1024Rounds)

    /// All derivations, in the order in which they are tried.
    public static let allCases = [hmacSHA256, hmacSHA1, hmacSHA1With1024Rounds]

    private static let salt = Array("Salty McNaCl".utf8)

    /// The 32 bytes that it derives from a password.
    func key(from password: SymmetricKey) throws(CofferError) -> SymmetricKey {
        let derivation =
            switch function {
            case .hmacSHA256: ForeignKeyDerivation(.sha256, iterations: 64_000, salt: Self.salt)
            case .hmacSHA1: ForeignKeyDerivation(.sha1, iterations: 64_000, salt: Self.salt)
            case .hmacSHA1With1024Rounds: ForeignKeyDerivation(.sha1, iterations: 1_024, salt: Self.salt)
            }
        return try password.foreignKey(by: derivation)
    }
}

extension SymmetricKey {
    /// The keys that a database may be encrypted under if this is its password, or its 32 bytes.
    func candidates(_ derivations: [CouchbaseLiteKeyDerivation]) throws(CofferError) -> [SymmetricKey] {
        try checkUsable()
        guard isPassword else { return [self] }
        var keys: [SymmetricKey] = []
        for derivation in derivations { keys.append(try derivation.key(from: self)) }
        return keys
    }
}
