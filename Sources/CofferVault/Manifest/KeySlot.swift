internal import CofferSealing

/// One way to open a store: its master key, wrapped under a key that is derived from one password or raw key.
package struct KeySlot: Sendable, Equatable {
    /// How the wrapping key is made of the key that opens this slot.
    package enum Derivation: Sendable, Equatable {
        case scrypt(log2N: UInt8, r: UInt8, p: UInt32)
        case pbkdf2SHA512(iterations: UInt32)
        /// HKDF-SHA-256 of 32 bytes, which need no stretching.
        case hkdfSHA256

        /// Whether the slot is opened by a password; otherwise by 32 bytes.
        package var takesPassword: Bool { self != .hkdfSHA256 }
    }

    /// A slot's name: random, and unique in its store.
    package struct ID: Sendable, Hashable, CustomStringConvertible {
        package let number: UInt64

        package init(_ number: UInt64) { self.number = number }

        /// 16 lower-case hex digits.
        package var description: String { hexadecimal(number) }
    }

    package let id: ID
    package let derivation: Derivation
    /// When the slot was made, in seconds since 1970.
    package let creationTime: UInt64

    let salt: [UInt8]
    let wrappedKey: [UInt8]

    static let byteCount = 112
    static let saltByteCount = 32
    static let wrappedKeyByteCount = 40

    /// The master key, when `key` is one of the slot's kind and opens it. A key of the other kind costs no derivation.
    func masterKey(openedBy key: SymmetricKey, of store: StoreUUID) throws(CofferError) -> SymmetricKey? {
        guard key.isPassword == derivation.takesPassword else { return nil }
        return try key.derivedKey(by: derivation.keyDerivation(salt: salt, store: store)).unwrap(wrappedKey)
    }

    /// A new slot, opened by `key`, at the price of one derivation. Throws `invalidKey` (400) for an empty password.
    static func sealing(
        _ masterKey: SymmetricKey, under key: SymmetricKey, cost: PasswordCost, of store: StoreUUID, at time: UInt64
    ) throws(CofferError) -> KeySlot {
        let derivation = key.isPassword ? cost.derivation : .hkdfSHA256
        let salt = try randomBytes(count: saltByteCount)
        let wrappingKey = try key.derivedKey(by: derivation.keyDerivation(salt: salt, store: store))
        var id: UInt64 = 0
        while id == 0 { id = try randomNumber() }
        return KeySlot(
            id: ID(id), derivation: derivation, creationTime: time, salt: salt,
            wrappedKey: try wrappingKey.wrap(masterKey))
    }
}

/// What an attacker pays for each guess of a password, and its owner at each opening.
package enum PasswordCost: Sendable, Equatable {
    /// scrypt with r = 8; memory is 2^(log2N + 10) bytes.
    case scrypt(log2N: UInt8, p: UInt32)
    /// PBKDF2 with HMAC-SHA-512, where policy asks for it.
    case pbkdf2(iterations: UInt32)

    /// About a quarter of a second and 68 MiB.
    package static let standard = PasswordCost.scrypt(log2N: 16, p: 2)

    var derivation: KeySlot.Derivation {
        switch self {
        case .scrypt(let log2N, let p): .scrypt(log2N: log2N, r: 8, p: p)
        case .pbkdf2(let iterations): .pbkdf2SHA512(iterations: iterations)
        }
    }
}

extension KeySlot.Derivation {
    /// The whole derivation of the wrapping key: label and store in the salt, or in the info of HKDF.
    func keyDerivation(salt: [UInt8], store: StoreUUID) -> KeyDerivation {
        switch self {
        case .scrypt(let log2N, let r, let p):
            .scrypt(log2N: log2N, r: r, p: p, salt: KeyLabel.wrapping("scrypt", of: store) + salt)
        case .pbkdf2SHA512(let iterations):
            .pbkdf2SHA512(iterations: iterations, salt: KeyLabel.wrapping("pbkdf2-sha512", of: store) + salt)
        case .hkdfSHA256:
            .hkdfSHA256(salt: salt, info: KeyLabel.wrapping("raw", of: store))
        }
    }

    /// Whether a store may ask for this much work. Checked before any of it is done.
    var isWithinBounds: Bool {
        switch self {
        case .scrypt(let log2N, let r, let p): KeyDerivation.scrypt(log2N: log2N, r: r, p: p, salt: []).isWithinBounds
        case .pbkdf2SHA512(let iterations): KeyDerivation.pbkdf2SHA512(iterations: iterations, salt: []).isWithinBounds
        case .hkdfSHA256: true
        }
    }
}

/// The labels that keep every key to one purpose, one store and one generation.
enum KeyLabel {
    static func wrapping(_ derivation: String, of store: StoreUUID) -> [UInt8] {
        Array("coffer/v1/kek/\(derivation)".utf8) + [0] + store.bytes
    }

    static func subkey(for purpose: String, of store: StoreUUID, generation: UInt64) -> [UInt8] {
        var label = FieldWriter()
        label.append(Array("coffer/v1/\(purpose)".utf8) + [0] + store.bytes)
        label.append(generation)
        return label.bytes
    }
}

extension KeySlot {
    /// The types of docs/FORMAT.md.
    private enum TypeByte {
        static let empty: UInt8 = 0
        static let password: UInt8 = 1
        static let rawKey: UInt8 = 2
    }

    private enum DerivationByte {
        static let none: UInt8 = 0
        static let scrypt: UInt8 = 1
        static let pbkdf2: UInt8 = 2
        static let argon2id: UInt8 = 3
    }

    /// 1: a password is the UTF-8 of its form NFC.
    private static let passwordEncoding: UInt8 = 1

    /// Whether the 112 bytes ask for a derivation that only a later version has.
    static func asksForLaterVersion(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes[bytes.startIndex + 1] == DerivationByte.argon2id
    }

    /// The slot in 112 bytes, nil when they are an empty one. Throws `damaged` when a value is out of its range. That
    /// nothing else is in the bytes is for the caller to check.
    static func parse(_ bytes: ArraySlice<UInt8>) throws(CofferError) -> KeySlot? {
        var reader = FieldReader(bytes)
        let type = reader.number(UInt8.self)
        guard type != TypeByte.empty else {
            guard bytes.allSatisfy({ $0 == 0 }) else { throw CofferError(.damaged, "an empty key slot is not zero") }
            return nil
        }
        let derivationByte = reader.number(UInt8.self)
        let log2N = reader.number(UInt8.self)
        let r = reader.number(UInt8.self)
        let cost = reader.number(UInt32.self)
        // Password encoding and reserved bytes have one value each.
        _ = reader.bytes(8)
        let salt = reader.bytes(saltByteCount)
        let wrappedKey = reader.bytes(wrappedKeyByteCount)
        let id = reader.number(UInt64.self)
        let creationTime = reader.number(UInt64.self)

        let derivation: Derivation
        switch (type, derivationByte) {
        case (TypeByte.password, DerivationByte.scrypt): derivation = .scrypt(log2N: log2N, r: r, p: cost)
        case (TypeByte.password, DerivationByte.pbkdf2): derivation = .pbkdf2SHA512(iterations: cost)
        case (TypeByte.rawKey, DerivationByte.none): derivation = .hkdfSHA256
        default: throw CofferError(.damaged, "a key slot has an unknown type or derivation")
        }
        guard derivation.isWithinBounds else {
            throw CofferError(.damaged, "the key derivation of a key slot is out of bounds")
        }
        guard id != 0 else { throw CofferError(.damaged, "a key slot has no id") }
        return KeySlot(
            id: ID(id), derivation: derivation, creationTime: creationTime, salt: salt, wrappedKey: wrappedKey)
    }

    /// The slot's 112 bytes.
    var bytes: [UInt8] {
        var writer = FieldWriter()
        switch derivation {
        case .scrypt(let log2N, let r, let p):
            writer.append([TypeByte.password, DerivationByte.scrypt, log2N, r])
            writer.append(p)
        case .pbkdf2SHA512(let iterations):
            writer.append([TypeByte.password, DerivationByte.pbkdf2, 0, 0])
            writer.append(iterations)
        case .hkdfSHA256:
            writer.append([TypeByte.rawKey, DerivationByte.none, 0, 0, 0, 0, 0, 0])
        }
        writer.append(derivation.takesPassword ? Self.passwordEncoding : 0)
        writer.pad(to: 16)
        writer.append(salt)
        writer.append(wrappedKey)
        writer.append(id.number)
        writer.append(creationTime)
        writer.pad(to: Self.byteCount)
        return writer.bytes
    }
}
