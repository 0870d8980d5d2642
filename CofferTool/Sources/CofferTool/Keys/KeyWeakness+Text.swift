@_spi(Tool) internal import CofferKeys

extension KeyWeakness {
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
}
