/// How another library makes 32 bytes of a password: PBKDF2, RFC 8018 section 5.2. Only to read what it has written: no store of
/// Coffer's has a key that cost so little.
package struct ForeignKeyDerivation: Sendable, Equatable {
    package enum Digest: Sendable {
        case sha1
        case sha256
    }

    package let digest: Digest
    package let iterations: UInt32
    package let salt: [UInt8]

    package init(_ digest: Digest, iterations: UInt32, salt: [UInt8]) {
        self.digest = digest
        self.iterations = iterations
        self.salt = salt
    }
}

extension SymmetricKey {
    /// The 32 bytes that another library makes of this password.
    ///
    /// - Throws: `invalidKey` (400) for a password that can't be; `invalidArgument` (400) for 32 bytes.
    package func foreignKey(by derivation: ForeignKeyDerivation) throws(CofferError) -> SymmetricKey {
        guard isPassword else { throw CofferError(.invalidArgument, "this key derivation takes a password") }
        try checkUsable()
        return SymmetricKey(
            bytes: try unsafe withBytes { (password) throws(CofferError) in
                try unsafe PasswordHashing.pbkdf2(password, derivation, byteCount: Self.byteCount)
            })
    }
}
