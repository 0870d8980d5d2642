package import CofferSealing

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
