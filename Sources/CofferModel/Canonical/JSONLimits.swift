internal import CofferSealing

/// What JSON Coffer reads and writes, at most.
package enum JSONLimits {
    /// The bytes of one document, as they come and in canonical form. More belongs into an attachment; and positions within
    /// a document fit into 32 bits, with room to spare.
    package static let byteCount = 64 << 20

    /// The values of one document, or of another text that is read into values: elements, members and containers, each counted
    /// once. Two bytes of text can be a value, which takes some fifty times as much memory, so that a bound on bytes alone lets
    /// 64 MiB of text become gigabytes.
    package static let valueCount = 1 << 20

    /// What is stored was within the bounds of its time, and is read whatever they are now.
    package static let storedValueCount = Int.max

    /// The most memory that one value takes beside its text, in bytes: an element or a member, with its share of the container
    /// around it and of the table in which members are looked up.
    package static let valueByteCost = 160

    /// How deep arrays and objects nest, as in other JSON libraries: readers in languages that recurse keep up.
    package static let depth = 512
}

extension CofferError {
    /// JSON that is refused because of what stands at byte `offset`. Never with what stands there.
    static func invalidJSON(_ what: String, at offset: Int) -> CofferError {
        CofferError(.invalidJSON, "\(what) at byte \(offset)")
    }

    static var tooManyValues: CofferError { CofferError(.invalidJSON, "more than \(JSONLimits.valueCount) values") }
}
