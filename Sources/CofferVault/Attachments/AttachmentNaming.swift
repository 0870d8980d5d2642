package import CofferSealing

/// How the attachment files of one generation are called.
package struct AttachmentNaming: Sendable {
    /// Nil when files are named by the SHA-1 itself.
    private let key: SymmetricKey?

    private static let suffix = ".blob"

    package init(_ manifest: UnlockedManifest) throws(CofferError) {
        switch manifest.manifest.attachmentNames {
        case .sha1: key = nil
        case .keyed: key = try manifest.key(for: .names)
        }
    }

    /// The name of the file with the content of this SHA-1: in lower-case hex the SHA-1, or where names are keyed its
    /// HMAC-SHA-256, and `.blob`.
    package func name(of sha1: [UInt8]) throws(CofferError) -> String {
        precondition(sha1.count == DigestAlgorithm.sha1.byteCount, "a SHA-1 has 20 bytes")
        guard let key else { return Self.plainName(of: sha1) }
        return hexadecimal(try key.authenticationCode(for: sha1)) + Self.suffix
    }

    static func plainName(of sha1: [UInt8]) -> String { hexadecimal(sha1) + suffix }

    /// The SHA-1 in a well-formed name, from which it can't be told where names are keyed: nil then.
    package func sha1(of name: String) -> [UInt8]? {
        guard key == nil, Self.isWellFormed(name, in: .sha1) else { return nil }
        let digits = name.utf8.dropLast(Self.suffix.utf8.count).compactMap {
            Character(UnicodeScalar($0)).hexDigitValue
        }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    func isWellFormed(_ name: String) -> Bool { Self.isWellFormed(name, in: key == nil ? .sha1 : .keyed) }

    /// Whether an attachment's file may be called so; nothing else in `attachments/` is ever taken for one.
    static func isWellFormed(_ name: String, in names: Manifest.AttachmentNames) -> Bool {
        let digest: DigestAlgorithm =
            switch names {
            case .sha1: .sha1
            case .keyed: .sha256
            }
        let digits = name.utf8.dropLast(suffix.utf8.count)
        return digits.count == 2 * digest.byteCount && digits.allSatisfy(isLowerCaseHexDigit)
            && name.utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    }
}

/// The names of files in `incoming/`.
enum IncomingName {
    /// Of content that is being written, or that nobody has begun to install.
    static func random() throws(CofferError) -> String { hexadecimal(try randomNumber()) }

    /// Of content that is about to be installed as `name`, or was: it tells the next open which file may have no row.
    static func announcing(_ name: String) throws(CofferError) -> String { "\(name).\(try random())" }

    /// The name of the file in `attachments/` that a file of this name in `incoming/` announces, if it does.
    static func announced(by name: String, in names: Manifest.AttachmentNames) -> String? {
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")) else { return nil }
        let announced = String(name[..<dot])
        return AttachmentNaming.isWellFormed(announced, in: names) ? announced : nil
    }
}

/// `bytes` in lower-case hex.
func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}
