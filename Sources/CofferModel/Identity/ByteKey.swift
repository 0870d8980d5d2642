/// A string that is compared by its bytes: two that Swift takes to be the same may name two things.
package struct ByteKey: Hashable, Sendable {
    private let bytes: [UInt8]
    package init(_ text: String) { bytes = Array(text.utf8) }
}
