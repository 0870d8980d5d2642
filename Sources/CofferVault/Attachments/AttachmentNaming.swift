package import CofferSealing

/// How the attachment files of one generation are called.
package struct AttachmentNaming: Sendable {
    /// Nil when files are named by the SHA-1 itself.
    private let key: SymmetricKey?

    /// Which form names have.
    var kind: Manifest.AttachmentNames { key == nil ? .sha1 : .keyed }

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

    static func plainName(of sha1: [UInt8]) -> String { name(spelling: sha1) }

    /// The name with these bytes in hex.
    static func name(spelling digest: [UInt8]) -> String { hexadecimal(digest) + suffix }

    /// The SHA-1 in a well-formed name, from which it can't be told where names are keyed: nil then.
    package func sha1(of name: String) -> [UInt8]? { key == nil ? Self.digest(in: name, .sha1) : nil }

    func isWellFormed(_ name: String) -> Bool { Self.isWellFormed(name, in: kind) }

    /// How many bytes a name spells in hex.
    static func digestByteCount(in names: Manifest.AttachmentNames) -> Int {
        switch names {
        case .sha1: DigestAlgorithm.sha1.byteCount
        case .keyed: DigestAlgorithm.sha256.byteCount
        }
    }

    /// The bytes that a well-formed name spells; nil for any other.
    static func digest(in name: String, _ names: Manifest.AttachmentNames) -> [UInt8]? {
        guard isWellFormed(name, in: names) else { return nil }
        let count = digestByteCount(in: names)
        var digits = name.utf8.makeIterator()
        return [UInt8](capacity: count) { output in
            for _ in 0..<count {
                guard let high = digits.next()?.hexDigitValue, let low = digits.next()?.hexDigitValue else { return }
                output.append(high << 4 | low)
            }
        }
    }

    /// Whether an attachment's file may be called so; nothing else in `attachments/` is ever taken for one.
    static func isWellFormed(_ name: String, in names: Manifest.AttachmentNames) -> Bool {
        let digits = name.utf8.dropLast(suffix.utf8.count)
        return digits.count == 2 * digestByteCount(in: names) && digits.allSatisfy(\.isLowerCaseHexDigit)
            && name.utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    }
}
