internal import CofferSealing

/// One name in a directory, as the bytes that the file system keeps: any but zero and `/`, which need not be UTF-8.
///
/// A name that goes through `String` and back can be another one, and then what it named can't be removed.
package struct FileName: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Without a zero at the end.
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) { self.bytes = bytes }

    package init(_ text: String) { bytes = Array(text.utf8) }

    /// The name as text; nil if it isn't UTF-8.
    package var text: String? { String(validating: bytes, as: UTF8.self) }

    /// The name for messages: where it isn't UTF-8, or has control characters, each byte but printable ASCII is `\x` and two
    /// hex digits.
    package var description: String {
        if let text, !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) { return text }
        return bytes.reduce(into: "") { shown, byte in
            if (0x20...0x7E).contains(byte) {
                shown.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                shown += "\\x" + hexadecimal([byte])
            }
        }
    }

    package static func < (left: FileName, right: FileName) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }

    /// Lends the name to a call of the system, with a zero at the end.
    func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
        unsafe (bytes + [0]).withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { preconditionFailure("there is a zero at least") }
            return unsafe body(start.assumingMemoryBound(to: CChar.self))
        }
    }
}
