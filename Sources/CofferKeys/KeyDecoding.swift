public import Coffer
internal import CofferSealing
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

@_spi(Tool) extension KeySource.Encoding {
    /// The key that `secret` holds in this encoding.
    public func reading(from secret: consuming KeyBytes) throws(KeySourceError) -> KeyReading {
        if self != .raw { secret.dropLast(secret.lineEndByteCount) }
        guard secret.byteCount > 0 else { throw KeySourceError.unusable("the source of the key is empty") }
        switch self {
        case .password: return try password(secret)
        case .hex: return try key(ofBytes: Self.bytes(ofHex: secret))
        case .base64: return try key(ofBytes: Self.bytes(ofBase64: secret))
        case .raw: return try key(ofBytes: secret)
        }
    }

    private func password(_ secret: borrowing KeyBytes) throws(KeySourceError) -> KeyReading {
        let password = unsafe secret.withBytes { unsafe String(validating: $0, as: UTF8.self) }
        guard let password else {
            throw KeySourceError.unusable(
                "a password is text in UTF-8, and this is not",
                hint: "32 bytes that are not text: raw+ before the source")
        }
        return KeyReading(key: SymmetricKey(password: password), password: password)
    }

    /// What 32 bytes look like that `password` probably is; nil if it looks like a password.
    static func probable(ofPassword password: String) -> Self? {
        let characters = Array(password.utf8)
        if characters.count == 64, characters.allSatisfy({ $0.hexDigitValue != nil }) { return .hex }
        guard characters.count == 44, characters.last == UInt8(ascii: "=") else { return nil }
        let digits = characters.dropLast().compactMap(base64Value)
        // The last of them has two bits that belong to no byte.
        return digits.count == 43 && digits[42] & 3 == 0 ? .base64 : nil
    }

    private func key(ofBytes secret: borrowing KeyBytes) throws(KeySourceError) -> KeyReading {
        do {
            let key = try unsafe secret.withBytes { bytes throws(CofferError) in try unsafe SymmetricKey(data: bytes) }
            return KeyReading(key: key, weaknesses: KeyWeakness.weaknesses(ofBytes: key))
        } catch {
            throw KeySourceError.unusable("a key that is not a password has 32 bytes, and this has \(secret.byteCount)")
        }
    }

    private static func bytes(ofHex digits: borrowing KeyBytes) throws(KeySourceError) -> KeyBytes {
        guard digits.byteCount.isMultiple(of: 2) else { throw notHex }
        var bytes = KeyBytes()
        for position in stride(from: 0, to: digits.byteCount, by: 2) {
            guard let high = digits[position].hexDigitValue, let low = digits[position + 1].hexDigitValue else {
                throw notHex
            }
            try bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func bytes(ofBase64 digits: borrowing KeyBytes) throws(KeySourceError) -> KeyBytes {
        guard digits.byteCount.isMultiple(of: 4) else { throw notBase64 }
        var paddingCount = 0
        while paddingCount < 2, digits.byteCount > paddingCount,
            digits[digits.byteCount - 1 - paddingCount] == UInt8(ascii: "=")
        {
            paddingCount += 1
        }
        var bytes = KeyBytes()
        var bits: UInt32 = 0
        var bitCount = 0
        for position in 0..<(digits.byteCount - paddingCount) {
            guard let value = base64Value(digits[position]) else { throw notBase64 }
            bits = (bits << 6 | UInt32(value)) & 0xFFFF
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                try bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
            }
        }
        // What is left over fills the last digit up, with zeros.
        guard bits & (1 << UInt32(bitCount) - 1) == 0 else { throw notBase64 }
        return bytes
    }

    private static func base64Value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }

    private static let notHex = KeySourceError.unusable("a key in hex is 64 digits from 0 to 9 and a to f")
    private static let notBase64 = KeySourceError.unusable("a key in base64 is 44 characters, the last of them =")
}

extension KeyBytes {
    /// The length of the line end that the bytes end in: 0, 1 for LF, 2 for CRLF.
    @_spi(Tool) public var lineEndByteCount: Int {
        guard byteCount > 0, self[byteCount - 1] == UInt8(ascii: "\n") else { return 0 }
        return byteCount > 1 && self[byteCount - 2] == UInt8(ascii: "\r") ? 2 : 1
    }
}

/// What makes a new key weaker than it was probably meant to be. Nothing of the key itself is in it.
@_spi(Tool) public enum KeyWeakness: Equatable, Sendable {
    /// The password is what 32 bytes in hex look like, so that `hex+` was probably forgotten.
    case hexDigits
    case shortPassword
    case zeroBytes
    /// Others than the owner can read the file that the key is in, or change it: its mode says so.
    case sharedFile(path: String, mode: UInt32)

    /// What guesses passwords by the million does not wait for one of fewer characters.
    public static let shortestPassword = 8

    static func weaknesses(ofPassword password: String) -> [KeyWeakness] {
        if KeySource.Encoding.probable(ofPassword: password) == .hex { return [.hexDigits] }
        return password.count < shortestPassword ? [.shortPassword] : []
    }

    static func weaknesses(ofBytes key: SymmetricKey) -> [KeyWeakness] {
        key == (try? SymmetricKey(data: Data(count: 32))) ? [.zeroBytes] : []
    }

    static func weaknesses(ofFile path: String) -> [KeyWeakness] {
        var status = stat()
        guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH) != 0
        else { return [] }
        return [.sharedFile(path: path, mode: UInt32(status.st_mode))]
    }
}

/// A key as it was read, and what to say of it where it is a new one.
@_spi(Tool) public struct KeyReading: Sendable {
    /// The key.
    public let key: SymmetricKey
    /// What makes it weak, in no order.
    public var weaknesses: [KeyWeakness] = []
    /// What a password looks like that was probably meant to be 32 bytes.
    public private(set) var probableEncoding: KeySource.Encoding?

    init(key: SymmetricKey, weaknesses: [KeyWeakness]) { (self.key, self.weaknesses) = (key, weaknesses) }

    /// A password.
    public init(key: SymmetricKey, password: String) {
        self.init(key: key, weaknesses: KeyWeakness.weaknesses(ofPassword: password))
        probableEncoding = .probable(ofPassword: password)
    }
}
