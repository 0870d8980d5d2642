internal import CofferSealing
internal import Synchronization

/// Bytes that come in pieces, from the network or from a store, to be taken once, by one task at a time.
package struct ByteStream: AsyncSequence, Sendable {
    package typealias Element = [UInt8]

    private let pull: @Sendable () async throws -> [UInt8]?

    /// - Parameter pull: the next piece; nil after the last one, and then always.
    package init(_ pull: @escaping @Sendable () async throws -> [UInt8]?) { self.pull = pull }

    /// Bytes that are all there.
    package init(_ bytes: [UInt8]) {
        let rest = Lock<[UInt8]?>(bytes.isEmpty ? nil : bytes)
        self.init { rest.withLock { $0.take() } }
    }

    package static let empty = ByteStream { nil }

    package func makeAsyncIterator() -> Iterator { Iterator(pull: pull) }

    /// The next piece; nil after the last one.
    package func next() async throws -> [UInt8]? { try await pull() }

    package struct Iterator: AsyncIteratorProtocol {
        fileprivate let pull: @Sendable () async throws -> [UInt8]?
        package mutating func next() async throws -> [UInt8]? { try await pull() }
    }

    /// All bytes.
    ///
    /// - Throws: 413 for more than `limit`.
    package func collect(upTo limit: Int) async throws -> [UInt8] {
        var all: [UInt8] = []
        while let piece = try await next() {
            guard all.count + piece.count <= limit else { throw SyncError(413, "more than \(limit) bytes") }
            if all.isEmpty { all = piece } else { all += piece }
        }
        return all
    }
}
