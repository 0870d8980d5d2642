import CofferSealing
import CofferVault
import Foundation
import Testing

/// What comes of bytes that were opened: a code, or `nil` when they opened.
private func outcome(_ bytes: [UInt8], _ key: SymmetricKey?) -> CofferError.Code? {
    do {
        _ = try Manifest(bytes: bytes).unlock(with: key)
        return nil
    } catch {
        return error.code
    }
}

/// The same bytes with a checksum that fits, as someone who can write the disk would make it.
private func withChecksum(_ bytes: [UInt8]) throws -> [UInt8] {
    var bytes = bytes
    bytes.replaceSubrange(960..<992, with: try Digest.sha256(of: Array(bytes[..<960])))
    return bytes
}

private func flipping(_ bit: Int, in bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    bytes[bit / 8] ^= 1 << (7 - bit % 8)
    return bytes
}

@Suite("A damaged manifest")
struct ManifestDamageTests {
    /// Slots 0, 2, 4 and 6 are opened by 32 bytes, 1, 3, 5 and 7 by passwords.
    let encrypted: [UInt8]
    let unencrypted: [UInt8]
    let key: SymmetricKey?

    init() throws {
        encrypted = try ManifestVector(named: "valid-gap-between-slots").bytes
        unencrypted = try ManifestVector(named: "valid-unencrypted").bytes
        key = try ManifestVector(named: "valid-gap-between-slots").symmetricKey
    }

    @Test("A manifest of any other length is damaged")
    func lengths() {
        for bytes in [encrypted, unencrypted] {
            for count in 0..<Manifest.byteCount {
                #expect(throws: CofferError(.damaged)) { try Manifest(bytes: Array(bytes.prefix(count))) }
            }
            for count in [1, 2, 1024, 3072] {
                #expect(throws: CofferError(.damaged)) {
                    try Manifest(bytes: bytes + [UInt8](repeating: 0, count: count))
                }
            }
        }
    }

    @Test("A manifest with any one bit flipped is damaged, whatever the key")
    func flips() {
        let bits = 0..<Manifest.byteCount * 8
        #expect(bits.filter { outcome(flipping($0, in: encrypted), key) != .damaged } == [])
        #expect(bits.filter { outcome(flipping($0, in: unencrypted), nil) != .damaged } == [])
        // Without a key nobody can tell whether the code is right.
        #expect(bits.filter { outcome(flipping($0, in: encrypted), nil) != .damaged } == Array(992 * 8..<1024 * 8))
        #expect(bits.suffix(256).filter { outcome(flipping($0, in: encrypted), nil) != .keyRequired } == [])
    }

    /// The vector has its key's slot at 5 and a password's at 7. Only salt and wrapped key of the slot that the key is
    /// tried on, and the UUID in its derivation, can make it look like another key.
    @Test("A manifest with any one bit flipped and its checksum made to fit is told by its field")
    func flipsWithChecksum() throws {
        let slot5 = 64 + 5 * 112
        let slot7 = 64 + 7 * 112
        var counts: [String: Int] = [:]
        for bit in 0..<960 * 8 {
            let byte = bit / 8
            let expected: CofferError.Code =
                switch byte {
                case 8, 9: .unsupportedFormat
                case 16..<32: .wrongKey
                case slot5 + 16..<slot5 + 88: .wrongKey
                // scrypt, 1, becomes Argon2id, 3.
                case slot7 + 1 where bit % 8 == 6: .unsupportedFormat
                default: .damaged
                }
            let actual = outcome(try withChecksum(flipping(bit, in: encrypted)), key)
            if actual != expected { Issue.record("bit \(bit % 8) of byte \(byte)") }
            counts[actual?.description ?? "opened", default: 0] += 1
        }
        #expect(counts == ["unsupportedFormat": 17, "wrongKey": (16 + 72) * 8, "damaged": 7680 - 17 - 704])
    }

    @Test("A manifest of a password is told the same way: a cost that was changed within its bounds is a wrong key")
    func passwordSlotFlips() throws {
        let vector = try ManifestVector(named: "valid-password-scrypt")
        var tried = 0
        for bit in 64 * 8..<(64 + 112) * 8 {
            let expected: CofferError.Code =
                switch (bit / 8 - 64, bit % 8) {
                // Argon2id.
                case (1, 6): .unsupportedFormat
                // N from 2^10 to 2^11 and 2^14: within bounds, and another key.
                case (2, 7), (2, 5): .wrongKey
                // p from 1 to 3.
                case (7, 6): .wrongKey
                // Salt and wrapped key, one bit of each byte: each costs a derivation.
                case (16..<88, 3): .wrongKey
                case (16..<88, _): .cancelled
                default: .damaged
                }
            if expected == .cancelled { continue }
            let bytes = try withChecksum(flipping(bit, in: vector.bytes))
            #expect(try outcome(bytes, vector.symmetricKey) == expected, "bit \(bit % 8) of byte \(bit / 8 - 64)")
            tried += 1
        }
        #expect(tried == 112 * 8 - 72 * 7)
    }

    /// Nothing authenticates it: numbers can be changed, and the database's binding row tells.
    @Test("A manifest of a store without encryption opens with other numbers only, once its checksum is made to fit")
    func unencryptedFlips() throws {
        let original = try Manifest(bytes: unencrypted)
        for bit in 0..<960 * 8 {
            let bytes = try withChecksum(flipping(bit, in: unencrypted))
            switch bit / 8 {
            case 8, 9:
                #expect(outcome(bytes, nil) == .unsupportedFormat, "bit \(bit)")
            case 56 where bit % 8 == 6:
                #expect(outcome(bytes, nil) == .unsupportedFormat)
            case 32, 40:
                // The top bit makes 64-bit numbers of them.
                #expect(outcome(bytes, nil) == (bit % 8 == 0 ? .damaged : nil))
            case 16..<56:
                let manifest = try Manifest(bytes: bytes)
                #expect(manifest != original)
                #expect(outcome(bytes, nil) == nil)
            default:
                #expect(outcome(bytes, nil) == .damaged, "bit \(bit)")
            }
        }
    }

    @Test("A damaged manifest is refused in a small part of the time of the cheapest derivation")
    func refusalIsCheap() throws {
        let derivation = shortestTime {
            _ = try? SymmetricKey(password: "p").derivedKey(by: .pbkdf2SHA512(iterations: 100_000, salt: [1]))
        }
        for name in ["damaged-scrypt-255-8-1", "damaged-pbkdf2-4294967295", "damaged-code-zero", "damaged-suite-2"] {
            let vector = try ManifestVector(named: name)
            let (bytes, key) = try (vector.bytes, vector.symmetricKey)
            #expect(outcome(bytes, key) == .damaged)
            #expect(shortestTime { _ = outcome(bytes, key) } < derivation / 10, "\(name)")
        }
    }
}
