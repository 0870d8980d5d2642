internal import Coffer
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// What makes a new key weaker than it was probably meant to be. Nothing of the key itself is in it.
enum KeyWeakness: Equatable {
    /// The password is what 32 bytes in hex look like, so that `hex+` was probably forgotten.
    case hexDigits
    case shortPassword
    case zeroBytes
    /// Others than the owner can read the file that the key is in, or change it.
    case sharedFile(path: String, mode: mode_t)

    /// What guesses passwords by the million does not wait for one of fewer characters.
    static let shortestPassword = 8

    var code: String {
        switch self {
        case .hexDigits: "hexDigitsAsPassword"
        case .shortPassword: "shortPassword"
        case .zeroBytes: "zeroKey"
        case .sharedFile: "sharedKeyFile"
        }
    }

    var message: String {
        switch self {
        case .hexDigits: "the new key is 64 hexadecimal digits, which are taken for a password here"
        case .shortPassword: "the new key is a password of fewer than \(Self.shortestPassword) characters"
        case .zeroBytes: "all 32 bytes of the new key are zero, which anybody can guess"
        case .sharedFile(let path, let mode):
            "others than its owner can read or change the file of the new key, \(Console.printable(path)) "
                + "(mode \(String(mode & 0o777, radix: 8)))"
        }
    }

    var hint: String {
        switch self {
        case .hexDigits: "hex+ before the source makes them a key of 32 bytes, which opens a store faster"
        case .shortPassword: "coffer key generate makes a key that can't be guessed"
        case .zeroBytes: "coffer key generate makes one of random bytes"
        case .sharedFile: "chmod go= FILE keeps them out"
        }
    }

    // MARK: Finding them

    static func weaknesses(ofPassword password: String) -> [KeyWeakness] {
        let isHex = password.utf8.count == 64 && password.utf8.allSatisfy { KeySource.hexValue($0) != nil }
        if isHex { return [.hexDigits] }
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
        return [.sharedFile(path: path, mode: status.st_mode)]
    }
}

/// A key as it was read, and what to say of it where it is a new one.
struct KeyReading {
    let key: SymmetricKey
    var weaknesses: [KeyWeakness] = []
}
