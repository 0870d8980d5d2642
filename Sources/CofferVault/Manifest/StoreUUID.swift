package import CofferSealing

/// The 16 random bytes that identify a store's bytes. They are in every key derivation, so that nothing of one store
/// opens in another, and travel with a copy.
package struct StoreUUID: Sendable, Hashable {
    package let bytes: [UInt8]

    package static let byteCount = 16

    /// `bytes` must be 16.
    package init(bytes: [UInt8]) {
        precondition(bytes.count == Self.byteCount, "a store UUID has \(Self.byteCount) bytes")
        self.bytes = bytes
    }

    package static func random() throws(CofferError) -> StoreUUID {
        StoreUUID(bytes: try randomBytes(count: byteCount))
    }
}

extension StoreUUID: CustomStringConvertible {
    /// 32 lower-case hex digits in the usual five groups.
    package var description: String {
        let digits = bytes.map { hexadecimal([$0]) }
        return [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { digits[$0].joined() }.joined(separator: "-")
    }
}

/// A random number of 64 bits.
func randomNumber() throws(CofferError) -> UInt64 {
    try randomBytes(count: 8).reduce(0) { $0 << 8 | UInt64($1) }
}
