internal import CofferSealing

/// How a platform's Couchbase Lite 1.x makes the key of a database from a password.
public struct CouchbaseLiteKeyDerivation: Sendable, Hashable, CaseIterable {
    private enum Platform { case apple, dotNet, java }

    private let platform: Platform

    /// iOS and macOS: PBKDF2 with HMAC-SHA-256, 64,000 rounds.
    public static let apple = Self(platform: .apple)
    /// .NET: PBKDF2 with HMAC-SHA-1, 64,000 rounds.
    public static let dotNet = Self(platform: .dotNet)
    /// Android and Java: PBKDF2 with HMAC-SHA-1, 1,024 rounds.
    public static let java = Self(platform: .java)

    /// All of them.
    public static let allCases = [apple, dotNet, java]

    private static let salt = Array("Salty McNaCl".utf8)

    /// The 32 bytes that it makes of a password.
    func key(from password: SymmetricKey) throws(CofferError) -> SymmetricKey {
        let derivation =
            switch platform {
            case .apple: ForeignKeyDerivation(.sha256, iterations: 64_000, salt: Self.salt)
            case .dotNet: ForeignKeyDerivation(.sha1, iterations: 64_000, salt: Self.salt)
            case .java: ForeignKeyDerivation(.sha1, iterations: 1_024, salt: Self.salt)
            }
        return try password.foreignKey(by: derivation)
    }
}

extension SymmetricKey {
    /// The keys that a database which this opens may be encrypted under.
    func candidates(_ derivations: [CouchbaseLiteKeyDerivation]) throws(CofferError) -> [SymmetricKey] {
        try checkUsable()
        guard isPassword else { return [self] }
        var keys: [SymmetricKey] = []
        for derivation in derivations { keys.append(try derivation.key(from: self)) }
        return keys
    }
}
