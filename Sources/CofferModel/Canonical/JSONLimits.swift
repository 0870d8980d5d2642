internal import CofferSealing

/// What JSON Coffer reads and writes, at most.
package enum JSONLimits {
    /// The bytes of one document, as they come and in canonical form. More belongs into an attachment; and positions within
    /// a document fit into 32 bits, with room to spare.
    package static let byteCount = 64 << 20

    /// How deep arrays and objects nest, as in other JSON libraries: readers in languages that recurse keep up.
    package static let depth = 512
}

extension CofferError {
    /// JSON that is refused because of what stands at byte `offset`. Never with what stands there.
    static func invalidJSON(_ what: String, at offset: Int) -> CofferError {
        CofferError(.invalidJSON, "\(what) at byte \(offset)")
    }
}
