internal import Foundation

/// A string in the bytes of a JSON text: what stands between its quotes.
struct JSONString {
    private let extent: JSONCursor.Extent

    init(_ extent: JSONCursor.Extent) {
        self.extent = extent
    }

    /// Whether the string is `other`, byte for byte.
    func isEqual(to other: String, _ bytes: Span<UInt8>) -> Bool {
        var offset = extent.range.lowerBound
        for byte in other.utf8 {
            guard offset < extent.range.upperBound else { return false }
            if bytes[offset] == UInt8(ascii: "\\") {
                return value(bytes).map { $0.utf8.elementsEqual(other.utf8) } ?? false
            }
            guard bytes[offset] == byte else { return false }
            offset += 1
        }
        return offset == extent.range.upperBound
    }

    /// The string, or nil if its escapes or its UTF-8 are not valid.
    func value(_ bytes: Span<UInt8>) -> String? {
        var text: [UInt8] = []
        text.reserveCapacity(extent.range.count + 2)
        var hasEscapes = false
        for offset in extent.range {
            hasEscapes = hasEscapes || bytes[offset] == UInt8(ascii: "\\")
            text.append(bytes[offset])
        }
        guard hasEscapes else { return String(validating: text, as: UTF8.self) }
        let quoted = [UInt8(ascii: "\"")] + text + [UInt8(ascii: "\"")]
        return try? JSONDecoder().decode(String.self, from: Data(quoted))
    }
}
