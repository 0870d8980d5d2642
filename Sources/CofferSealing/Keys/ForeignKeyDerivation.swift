/// How another library derives 32 bytes from a password: PBKDF2, RFC 8018 section 5.2. It is only for reading that
/// library's files: Coffer's own stores need a derivation that costs more.
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
    /// The 32 bytes that another library derives from this password.
    ///
    /// - Throws: `invalidKey` (400) for an invalid password; `invalidArgument` (400) for a key of 32 bytes.
    package func foreignKey(by derivation: ForeignKeyDerivation) throws(CofferError) -> SymmetricKey {
        guard isPassword else { throw CofferError(.invalidArgument, "this key derivation takes a password") }
        try checkUsable()
        return SymmetricKey(
            bytes: try unsafe withBytes { (password) throws(CofferError) in
                try unsafe PasswordHashing.pbkdf2(password, derivation, byteCount: Self.byteCount)
            })
    }
}
