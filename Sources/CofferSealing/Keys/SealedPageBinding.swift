/// What a sealed page belongs to, besides its kind and number: a page of another store, or of another generation of the same
/// one, doesn't open.
package struct SealedPageBinding: Sendable, Equatable {
    /// 16 bytes.
    package let storeUUID: [UInt8]
    package let generation: UInt64
    /// The random number in the name of the generation's directory.
    package let generationTag: UInt64

    package init(storeUUID: [UInt8], generation: UInt64, generationTag: UInt64) {
        precondition(storeUUID.count == Self.uuidByteCount, "a UUID has 16 bytes")
        self.storeUUID = storeUUID
        self.generation = generation
        self.generationTag = generationTag
    }

    private static let uuidByteCount = 16

    /// UUID, generation and tag, as they are authenticated with every page: 32 bytes.
    package var bytes: [UInt8] { storeUUID + bigEndian(generation) + bigEndian(generationTag) }

    private func bigEndian(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
    }
}
