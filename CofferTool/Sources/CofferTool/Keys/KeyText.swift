internal import Coffer
internal import Foundation
@_spi(Tool) internal import CofferKeys
internal import Synchronization

extension StoreInfo.KeySlot.Kind {
    var text: String {
        switch self {
        case .scryptPassword(let n, let r, let p): "password, scrypt N=\(n) r=\(r) p=\(p)"
        case .pbkdf2Password(let iterations): "password, PBKDF2 \(iterations) iterations"
        case .bytes: "32 bytes"
        }
    }

    /// A word for programs, the numbers that go with it, and what people read.
    fileprivate func add(to line: inout JSONLine) {
        switch self {
        case .scryptPassword(let n, let r, let p):
            line.add("kind", "scryptPassword")
            line.add("n", n)
            line.add("r", r)
            line.add("p", p)
        case .pbkdf2Password(let iterations):
            line.add("kind", "pbkdf2Password")
            line.add("iterations", iterations)
        case .bytes: line.add("kind", "bytes")
        }
        line.add("description", text)
    }
}

extension StoreInfo.KeySlot {
    /// One line for people.
    var text: String { "\(id)  \(created.ISO8601Format())  \(kind.text)" }

    var json: String {
        var line = JSONLine(type: "key")
        line.add("id", id)
        line.add("created", created.ISO8601Format())
        kind.add(to: &line)
        return line.finished
    }
}

extension DatabaseKey {
    /// One line for people.
    var text: String {
        let label = label.map { "  " + Console.printable($0) } ?? ""
        return "\(isCurrent ? "*" : " ") \(id)  \(created.ISO8601Format())  \(kind.text)\(label)"
    }

    var json: String {
        var line = JSONLine(type: "key")
        line.add("id", id)
        line.add("created", created.ISO8601Format())
        kind.add(to: &line)
        if let label { line.add("label", label) }
        line.add("current", isCurrent)
        return line.finished
    }
}

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
            "others than its owner can read or change the file of the key, \(Console.printable(path)) "
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

/// Which keys were read as passwords and look like 32 bytes: where no key opens a store, that was probably not meant. Nothing of
/// the keys is kept.
enum ForgottenEncoding {
    private static let noted = Mutex<(option: String?, encoding: String)?>(nil)

    /// - Parameter option: what named the key; nil if nobody knows.
    static func note(_ reading: KeyReading, of option: String?) {
        let prefix: String? =
            switch reading.probableEncoding {
            case .hex: "hex"
            case .base64: "base64"
            default: nil
            }
        guard let prefix else { return }
        noted.withLock { $0 = $0 ?? (option, prefix) }
    }

    /// What to say where a key is wrong; nil if no key looks like that.
    static var hint: String? {
        noted.withLock { $0 }.map { option, encoding in
            "what \(option.map { "\($0) names" } ?? "a key's source holds") looks like 32 bytes in \(encoding), and was taken for "
                + "a password: \(encoding)+ before the source says what it is"
        }
    }
}
