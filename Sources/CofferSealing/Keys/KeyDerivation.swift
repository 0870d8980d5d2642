internal import Dispatch

/// A way to make key bytes from another key or a password, with everything that decides the result but the secret.
package enum KeyDerivation: Sendable, Equatable {
    /// scrypt, RFC 7914, of a password. `salt` is the whole salt string, label and UUID included.
    case scrypt(log2N: UInt8, r: UInt8, p: UInt32, salt: [UInt8])
    /// PBKDF2 with HMAC-SHA-512, RFC 8018, of a password. `salt` is the whole salt string.
    case pbkdf2SHA512(iterations: UInt32, salt: [UInt8])
    /// HKDF with SHA-256, RFC 5869, extract and expand, of 32 bytes.
    case hkdfSHA256(salt: [UInt8], info: [UInt8])
    /// The expand step of the same alone, of 32 random bytes.
    case hkdfExpandSHA256(info: [UInt8])
    /// The expand step with SHA-512, of 32 random bytes.
    case hkdfExpandSHA512(info: [UInt8])

    /// Whether the cost is one that a store may ask for.
    ///
    /// Whoever can write a store's files can write these numbers, so they are checked before any work and any memory:
    /// at most 256 MiB and a few seconds, and no number so low that it would be taken for protection.
    package var isWithinBounds: Bool {
        switch self {
        case .scrypt(let log2N, let r, let p, _):
            // N·p ≤ 2^18; the ranges before it make the shift safe.
            (10...18).contains(log2N) && r == 8 && (1...4).contains(p) && UInt64(p) << log2N <= 1 << 18
        case .pbkdf2SHA512(let iterations, _):
            (100_000...2_000_000).contains(iterations)
        case .hkdfSHA256, .hkdfExpandSHA256, .hkdfExpandSHA512:
            true
        }
    }

    /// Whether it takes a password; the others take 32 bytes.
    package var takesPassword: Bool {
        switch self {
        case .scrypt, .pbkdf2SHA512: true
        case .hkdfSHA256, .hkdfExpandSHA256, .hkdfExpandSHA512: false
        }
    }
}

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

/// The keys that a password was stretched to, for as long as whoever made the password's key asked for.
///
/// Each is a key like any other: in memory that is locked, and overwritten as it goes. That happens when its time is over
/// even if nobody asks any more. Safe from any thread.
final class KeptDerivations: Sendable {
    private struct Entry {
        let number: Int
        let derivation: KeyDerivation
        let key: SymmetricKey
    }

    private struct State {
        var entries: [Entry] = []
        var lastNumber = 0
    }

    /// How many are kept at once, the newest.
    static let limit = 16

    private let duration: Duration
    private let state = Lock(State())

    init(for duration: Duration) { self.duration = duration }

    /// What `derivation` led to, if that is still kept.
    func key(by derivation: KeyDerivation) -> SymmetricKey? {
        state.withLock { state in state.entries.first { $0.derivation == derivation }?.key }
    }

    /// Keeps what `derivation` led to.
    func keep(_ key: SymmetricKey, by derivation: KeyDerivation) {
        let number = state.withLock { state in
            state.lastNumber += 1
            state.entries.removeAll { $0.derivation == derivation }
            state.entries.append(Entry(number: state.lastNumber, derivation: derivation, key: key))
            if state.entries.count > Self.limit { state.entries.removeFirst() }
            return state.lastNumber
        }
        let (seconds, attoseconds) = duration.components
        DispatchQueue.global().asyncAfter(deadline: .now() + Double(seconds) + Double(attoseconds) * 1e-18) {
            [weak self] in self?.drop(number)
        }
    }

    private func drop(_ number: Int) { state.withLock { state in state.entries.removeAll { $0.number == number } } }
}
