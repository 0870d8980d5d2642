extension SymmetricKey {
    /// The 32-byte key that `derivation` makes of this one.
    package func derivedKey(by derivation: KeyDerivation) throws(CofferError) -> SymmetricKey {
        if let kept = keptDerivations?.key(by: derivation) { return kept }
        let key = SymmetricKey(bytes: try derivedBytes(by: derivation, byteCount: Self.byteCount))
        keptDerivations?.keep(key, by: derivation)
        return key
    }

    /// `byteCount` bytes that `derivation` makes of this key. Every AES key that is not random itself comes from here.
    func derivedBytes(
        by derivation: KeyDerivation, byteCount: Int, lifetime: SecretBytes.Lifetime = .long
    ) throws(CofferError) -> SecretBytes {
        guard derivation.takesPassword == isPassword else {
            throw CofferError(.invalidArgument, "this key derivation takes \(isPassword ? "32 bytes" : "a password")")
        }
        try checkUsable()
        guard derivation.isWithinBounds else {
            throw CofferError(.invalidArgument, "the cost of the key derivation is out of bounds")
        }
        return try unsafe withBytes { (secret) throws(CofferError) -> SecretBytes in
            switch derivation {
            case .scrypt(let log2N, let r, let p, let salt):
                try unsafe PasswordHashing.scrypt(
                    secret, salt: salt, n: 1 << UInt64(log2N), r: UInt64(r), p: UInt64(p), byteCount: byteCount)
            case .pbkdf2SHA512(let iterations, let salt):
                try unsafe PasswordHashing.pbkdf2SHA512(
                    secret, salt: salt, iterations: iterations, byteCount: byteCount)
            case .hkdfSHA256(let salt, let info):
                try unsafe HKDF.extractAndExpandSHA256(secret, salt: salt, info: info, byteCount: byteCount)
            case .hkdfExpandSHA256(let info):
                try unsafe HKDF.expandSHA256(secret, info: info, byteCount: byteCount)
            case .hkdfExpandSHA512(let info):
                try unsafe HKDF.expandSHA512(secret, info: info, byteCount: byteCount, lifetime: lifetime)
            }
        }
    }

    /// `key` wrapped under this one, AES-256-KW of RFC 3394: 40 bytes, the same at every call.
    package func wrap(_ key: SymmetricKey) throws(CofferError) -> [UInt8] {
        try requireBytes("wrap")
        try key.requireBytes("be wrapped")
        return try unsafe withBytes { (wrappingKey) throws(CofferError) in
            try unsafe key.withBytes { (bytes) throws(CofferError) in
                try unsafe KeyWrapCipher.wrap(bytes, under: wrappingKey)
            }
        }
    }

    /// The key in 40 bytes that ``wrap(_:)`` made, or nil when the check value is wrong: they were wrapped under another
    /// key, or changed.
    package func unwrap(_ wrapped: [UInt8]) throws(CofferError) -> SymmetricKey? {
        try requireBytes("unwrap")
        let wrappedByteCount = Self.byteCount + KeyWrapCipher.overheadByteCount
        guard wrapped.count == wrappedByteCount else {
            throw CofferError(.invalidArgument, "a wrapped key has \(wrappedByteCount) bytes, not \(wrapped.count)")
        }
        let bytes = try unsafe withBytes { (wrappingKey) throws(CofferError) in
            try unsafe KeyWrapCipher.unwrap(wrapped, under: wrappingKey)
        }
        guard let bytes else { return nil }
        return SymmetricKey(bytes: bytes)
    }

    /// HMAC-SHA-256 of `message` under this key: 32 bytes.
    package func authenticationCode(for message: [UInt8]) throws(CofferError) -> [UInt8] {
        try requireBytes("authenticate")
        return try unsafe withBytes { (key) throws(CofferError) in try unsafe hmacSHA256(message, key: key) }
    }

    /// Refuses an empty password, which would be no protection at all, and one that HMAC takes for another.
    package func checkUsable() throws(CofferError) {
        if let defect { throw CofferError(.invalidKey, defect) }
    }

    private func requireBytes(_ purpose: String) throws(CofferError) {
        guard !isPassword else { throw CofferError(.invalidArgument, "a password can't \(purpose)") }
    }
}
