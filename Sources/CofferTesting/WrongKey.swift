internal import CofferSealing
internal import CofferVault
internal import Coffer
internal import Foundation

/// A key that must not open a store, and what is to be said about it.
struct WrongKey: Sendable {
    /// What somebody tries, in words that don't say the key.
    let name: String
    let key: SymmetricKey?
    let code: CofferError.Code

    /// What people and programs try in the place of `key`: guesses, slips, other encodings, single bits.
    ///
    /// Without a key the store isn't encrypted, and every key is a wrong one.
    static func matrix(insteadOf key: SymmetricKey?) throws(CofferError) -> [WrongKey] {
        let strangers: [(String, SymmetricKey)] = [
            ("another password", SymmetricKey(password: "Not the password, \(UUID())")),
            ("32 other bytes", try SymmetricKey()),
        ]
        guard let key else { return strangers.map { WrongKey(name: $0.0, key: $0.1, code: .notEncrypted) } }
        let near = try key.isPassword ? slips(of: key) : neighbors(of: key)
        return [WrongKey(name: "no key", key: nil, code: .keyRequired)]
            + (strangers + near).filter { $0.1 != key }.map { WrongKey(name: $0.0, key: $0.1, code: .wrongKey) }
    }

    /// What comes of typing a password almost right, and of taking it for bytes.
    private static func slips(of key: SymmetricKey) throws(CofferError) -> [(String, SymmetricKey)] {
        let password = unsafe key.withBytes { unsafe String(decoding: $0, as: UTF8.self) }
        let bytes = Array(password.utf8)
        var slips = [
            ("the password in upper case", password.uppercased()),
            ("the password in lower case", password.lowercased()),
            ("the password with a space behind it", password + " "),
            ("the password with a space before it", " " + password),
            ("the password with a line feed behind it", password + "\n"),
            ("the password twice", password + password),
            ("the password in base64", Data(bytes).base64EncodedString()),
            ("the password in hex", hexadecimal(bytes)),
        ]
        if password.count > 1 {
            slips.append(("the password without its last character", String(password.dropLast())))
            slips.append(("the password without its first character", String(password.dropFirst())))
        }
        let padded = (bytes + [UInt8](repeating: 0, count: 32)).prefix(32)
        return slips.map { ($0.0, SymmetricKey(password: $0.1)) }
            + keys([
                ("the password's bytes, filled up with zeros", Array(padded)),
                ("the password's SHA-256", try Digest.sha256(of: bytes)),
            ])
    }

    /// The keys next to one of 32 bytes, and the same bytes taken for a password.
    private static func neighbors(of key: SymmetricKey) throws(CofferError) -> [(String, SymmetricKey)] {
        let bytes = unsafe key.withBytes { unsafe Array($0) }
        let flipped = [0, 1, 127, 128, 254, 255].map { bit in
            var changed = bytes
            changed[bit / 8] ^= 0x80 >> UInt8(bit % 8)
            return ("the key with bit \(bit) flipped", changed)
        }
        return keys(
            flipped + [
                ("the key backwards", bytes.reversed()), ("32 zeros", [UInt8](repeating: 0, count: 32)),
                ("the key's SHA-256", try Digest.sha256(of: bytes)),
            ])
            + [
                ("the key in hex, as a password", SymmetricKey(password: hexadecimal(bytes))),
                ("the key in base64, as a password", SymmetricKey(password: Data(bytes).base64EncodedString())),
            ]
    }

    private static func keys(_ named: [(String, [UInt8])]) -> [(String, SymmetricKey)] {
        named.compactMap { name, bytes in (try? SymmetricKey(data: bytes)).map { (name, $0) } }
    }
}
