internal import CofferSealing

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
