public import Foundation

/// The key of an encrypted store: a password, your own 32 bytes, or 32 random bytes.
///
/// ```swift
/// let password = SymmetricKey(password: "password123456")     // people remember it
/// let stored = try SymmetricKey(data: bytesFromTheKeychain)   // exactly 32 bytes that nobody can guess
/// let fresh = try SymmetricKey()                              // 32 random bytes, to be kept somewhere safe
/// ```
///
/// - **A password** is stretched each time a store is opened or made: by scrypt with N = 2^16, r = 8, p = 2 unless the
///   store says otherwise, about a quarter of a second and 68 MiB. Salt and cost belong to the store, so one
///   `SymmetricKey` opens any number of stores, and making it costs nothing. An app that opens a store again and again
///   can have what came of that kept for a while (``init(password:keepingDerivedKeysFor:)``).
/// - **32 bytes** are used without stretching and open a store in milliseconds. They must be as good as random: 32
///   characters that somebody typed are a password.
/// - A password and 32 bytes are different keys even if the password's UTF-8 is those 32 bytes, or spells them in hex.
///
/// No key encrypts anything itself: it unlocks the store's own random key, from which every AES-256 key is derived.
/// Whoever loses the last key of a store has lost the store.
///
/// **Memory.** The bytes live in one buffer outside of the swap space (as far as the system allows it), which is
/// overwritten when the last reference to the key goes away. Coffer makes no other copy that outlasts the call that needs
/// it. What it can't overwrite is what you had before: the `String` or `Data` that you passed in, and what you copy out of
/// ``withBytes(_:)``. A password with characters beyond ASCII also leaves a copy in Foundation, which normalizes it.
///
/// Nothing prints a key: descriptions, `dump` and mirrors are redacted, and it isn't `Codable`.
///
/// **Threads.** A key never changes and can be used from any thread.
///
/// **Its name** is also that of a type in CryptoKit and swift-crypto. Where both are imported, write
/// `Coffer.SymmetricKey`.
public final class SymmetricKey: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    private enum Kind { case password, bytes }

    private let kind: Kind
    private let secret: SecretBytes
    /// What it was stretched to lately; nil unless whoever made it asked for that.
    let keptDerivations: KeptDerivations?

    /// The length of every key that isn't a password.
    static let byteCount = 32

    /// A password.
    ///
    /// Two passwords that are equal as strings are the same key, whichever way a keyboard composed their characters: what
    /// is stretched is the UTF-8 of Unicode's normalization form C (Unicode Standard Annex #15). Nothing else is changed;
    /// spaces, upper case and line ends count. It may be of any length but empty, and hold any character but the zero
    /// one (U+0000): HMAC (RFC 2104, section 2) fills short keys up with zero bytes, so a password with one behind it would
    /// be the same key. This never throws; a password that can't be is refused where it is used, with
    /// `CofferError.Code.invalidKey` (400).
    public convenience init(password: String) { self.init(password: password, keepingDerivedKeysFor: .zero) }

    /// A password that is stretched once for all openings of a store within a while.
    ///
    /// An app that closes a database and opens it again, as when it goes to the background, pays the quarter of a second
    /// once. The price is that whoever reads this process's memory within that time finds keys that open those stores,
    /// even after they are closed. They are kept with this key, not with others of the same password, and go with it:
    ///
    /// ```swift
    /// let key = SymmetricKey(password: "password123456", keepingDerivedKeysFor: .seconds(30))
    /// ```
    ///
    /// - Parameters:
    ///   - password: as for ``init(password:)``.
    ///   - duration: for how long each is kept from when it was made; then it is overwritten. Of the sixteen that were made
    ///     last, no more. Zero or less keeps none.
    public init(password: String, keepingDerivedKeysFor duration: Duration) {
        kind = .password
        secret = SecretBytes(normalizing: password)
        keptDerivations = duration > .zero ? KeptDerivations(for: duration) : nil
    }

    /// Exactly 32 bytes of your own, as `Data`, `[UInt8]` or anything else that holds bytes.
    ///
    /// They are copied, and used without stretching: take them from a random source, a key store or a key derivation of
    /// your own, never from what somebody typed. A key in hex or base64 must be decoded first.
    ///
    /// - Throws: `CofferError.Code.invalidKey` (400) for any other length.
    public init(data: some ContiguousBytes) throws(CofferError) {
        var secret = SecretBytes(byteCount: Self.byteCount)
        let count = unsafe data.withUnsafeBytes { source in
            if source.count == Self.byteCount {
                unsafe secret.withMutableBytes { unsafe $0.copyMemory(from: source) }
            }
            return source.count
        }
        guard count == Self.byteCount else {
            throw CofferError(.invalidKey, "a key has \(Self.byteCount) bytes, not \(count)")
        }
        kind = .bytes
        self.secret = secret
        keptDerivations = nil
    }

    /// 32 new random bytes, from OpenSSL's generator for secrets.
    ///
    /// Keep them (see ``withBytes(_:)``) before you close the store that you made with them: nothing else opens it.
    ///
    /// - Throws: `CofferError.Code.encryptionUnavailable` (501) if OpenSSL has no random numbers, as when it is set up to
    ///   offer only algorithms that it does not have (`fips=yes` without a FIPS provider).
    public init() throws(CofferError) {
        kind = .bytes
        secret = try randomSecret(byteCount: Self.byteCount)
        keptDerivations = nil
    }

    /// The same key again: for an initializer of another target, which can't hand out a key that it has.
    package init(copying other: SymmetricKey) {
        kind = other.kind
        keptDerivations = other.keptDerivations
        secret = unsafe other.withBytes { bytes in
            var copy = SecretBytes(byteCount: bytes.count)
            unsafe copy.withMutableBytes { unsafe $0.copyMemory(from: bytes) }
            return copy
        }
    }

    /// A key that ``withBytes(_:)`` lent to somebody else: 32 bytes, or the normalized UTF-8 of a password.
    ///
    /// - Throws: `invalidKey` (400) for bytes of another length.
    package init(lent secret: consuming SecretBytes, isPassword: Bool) throws(CofferError) {
        guard isPassword || secret.byteCount == Self.byteCount else {
            throw CofferError(.invalidKey, "a key has \(Self.byteCount) bytes, not \(secret.byteCount)")
        }
        kind = isPassword ? .password : .bytes
        self.secret = secret
        keptDerivations = nil
    }

    /// A derived or unwrapped key.
    init(bytes: consuming SecretBytes) {
        precondition(bytes.byteCount == Self.byteCount, "a key has \(Self.byteCount) bytes")
        kind = .bytes
        secret = bytes
        keptDerivations = nil
    }

    /// Lends the key to `body`: 32 bytes, or for a password its normalized UTF-8.
    ///
    /// This is the only way to the bytes of a random key:
    ///
    /// ```swift
    /// let key = try SymmetricKey()
    /// try keychain.store(key.withBytes { Data($0) })
    /// ```
    ///
    /// The buffer is valid only within `body`. What you copy out of it is no longer overwritten by anybody.
    ///
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws.
    public func withBytes<R: ~Copyable, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try unsafe secret.withBytes(body)
    }

    /// Whether two keys are the same: both passwords or both bytes, and byte for byte equal.
    ///
    /// The time that this takes tells no more than whether kinds and lengths are the same.
    public static func == (left: SymmetricKey, right: SymmetricKey) -> Bool {
        guard left.kind == right.kind else { return false }
        return unsafe left.withBytes { left in
            unsafe right.withBytes { right in unsafe equalInConstantTime(left, right) }
        }
    }

    /// `SymmetricKey(redacted)`, whatever the key.
    public var description: String { "SymmetricKey(redacted)" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// A mirror that shows nothing, and so neither does `dump`.
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// Whether it is a password.
    package var isPassword: Bool { kind == .password }

    /// Why nothing can be opened with it; nil for every key but some passwords.
    var defect: String? {
        guard isPassword else { return nil }
        if secret.byteCount == 0 { return "the password is empty" }
        return unsafe secret.withBytes { unsafe $0.contains(0) } ? "the password holds a zero character" : nil
    }
}

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

extension SecretBytes {
    /// The UTF-8 of `password` in Unicode's form NFC, so that passwords that are equal as strings are the same key
    /// whichever way a keyboard composed them.
    ///
    /// ASCII is in that form already and goes straight into the secret buffer. Anything else passes through Foundation,
    /// which leaves a copy behind that can't be wiped.
    init(normalizing password: String) {
        if password.utf8.allSatisfy({ $0 < 0x80 }) {
            self.init(utf8Of: password)
        } else {
            self.init(utf8Of: password.precomposedStringWithCanonicalMapping)
        }
    }

    private init(utf8Of string: String) {
        unsafe self.init(byteCount: string.utf8.count) { buffer in
            for (index, byte) in string.utf8.enumerated() { unsafe buffer[index] = byte }
        }
    }
}
