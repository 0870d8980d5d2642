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

/// The name of a database that has been checked: what Couchbase Lite allows, and so no way out of a directory.
package struct DatabaseName: Sendable, Hashable {
    /// The name, such as `people` or `shop/orders`.
    package let text: String

    /// Names are shorter than this many bytes, so that the file's name, with its extension, fits into 255.
    package static let byteLimit = 240

    private static let fileExtension = ".coffer"

    /// - Throws: 400 (invalidDatabaseName) unless `text` is a lower-case ASCII letter followed by lower-case letters, digits
    ///   and `_$()+-/`, fewer than 240 bytes in all.
    package init(_ text: String) throws(CofferError) {
        guard Self.isValid(text) else {
            throw CofferError(
                .invalidDatabaseName, "lower-case letters, digits and _$()+-/ only, a letter first, under 240 bytes")
        }
        self.text = text
    }

    /// The name of the database that a directory holds, going by the directory's name; nil if it is not a database's.
    package init?(fileName: String) {
        guard fileName.utf8.count > Self.fileExtension.utf8.count, fileName.hasSuffix(Self.fileExtension),
            !fileName.utf8.contains(UInt8(ascii: "/"))
        else { return nil }
        let bytes = fileName.utf8.dropLast(Self.fileExtension.utf8.count)
        let text = String(decoding: bytes.map { $0 == UInt8(ascii: ":") ? UInt8(ascii: "/") : $0 }, as: UTF8.self)
        guard Self.isValid(text) else { return nil }
        self.text = text
    }

    /// The name of the database's directory: the database's, with `:` for `/`, and the extension.
    package var fileName: String { Self.fileName(of: text) }

    /// The name of the directory of the database of this name.
    package static func fileName(of text: String) -> String {
        String(decoding: text.utf8.map { $0 == UInt8(ascii: "/") ? UInt8(ascii: ":") : $0 }, as: UTF8.self)
            + fileExtension
    }

    package static func isValid(_ text: String) -> Bool {
        guard let first = text.utf8.first, isLetter(first), text.utf8.count < byteLimit else { return false }
        return text.utf8.allSatisfy { isLetter($0) || isDigit($0) || "_$()+-/".utf8.contains($0) }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
