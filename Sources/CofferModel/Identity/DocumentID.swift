package import CofferSealing

/// A document's id that has been checked. Ids are equal when their UTF-8 bytes are.
package struct DocumentID: Sendable {
    /// The id.
    package let text: String

    /// The bytes that an id has at most: no index entry with an id in it spills into an overflow page, where damage to it
    /// would go unnoticed.
    package static let byteLimit = 900

    /// Ids that start with one of these are the only ones that start with `_`.
    private static let designPrefix = "_design/"
    private static let localPrefix = "_local/"

    /// - Throws: 400 (invalidDocumentID) for an id that is empty, longer than 900 bytes, or starts with `_` and neither
    ///   with `_design/` nor with `_local/` and something after it.
    package init(_ text: String) throws(CofferError) {
        let count = text.utf8.count
        guard count > 0 else { throw CofferError(.invalidDocumentID, "it is empty") }
        guard count <= Self.byteLimit else {
            throw CofferError(.invalidDocumentID, "\(count) bytes, more than \(Self.byteLimit)")
        }
        self.text = text
        guard text.utf8.first != UInt8(ascii: "_") || isDesign || isLocal else {
            throw CofferError(.invalidDocumentID, "only _design/… and _local/… start with _")
        }
    }

    private init(unchecked text: String) { self.text = text }

    /// A new id of 136 random bits: `-` and 23 characters of base64url (RFC 4648 section 5).
    package static func random() -> DocumentID {
        var generator = SystemRandomNumberGenerator()
        var text = [UInt8(ascii: "-")]
        text.reserveCapacity(24)
        // 64 bits make ten characters; 60 + 60 + 16 of them are used.
        for (count, mask) in [(10, UInt64.max), (10, .max), (3, 0xFFFF)] {
            var bits = generator.next() & mask
            for _ in 0..<count {
                text.append(alphabet[Int(bits & 63)])
                bits >>= 6
            }
        }
        return DocumentID(unchecked: String(utf8: text.span))
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// Whether this is a design document, `_design/…`.
    package var isDesign: Bool { starts(with: Self.designPrefix) }

    /// Whether this is a local document, `_local/…`, which has no history and is never replicated.
    package var isLocal: Bool { starts(with: Self.localPrefix) }

    private func starts(with prefix: String) -> Bool {
        text.utf8.first == UInt8(ascii: "_") && text.utf8.count > prefix.utf8.count
            && text.utf8.starts(with: prefix.utf8)
    }
}

extension DocumentID: Hashable {
    package static func == (left: DocumentID, right: DocumentID) -> Bool { haveSameBytes(left.text, right.text) }
    package func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}
