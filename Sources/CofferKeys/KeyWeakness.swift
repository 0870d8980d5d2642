internal import Foundation
public import Coffer

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

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
