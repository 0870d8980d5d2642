internal import CByHand
internal import Foundation

/// A stream that makes its bytes when they are read.
final class GeneratedStream: InputStream {
    private let seed: UInt64
    private let byteCount: Int
    private var offset = 0
    private var status = Stream.Status.notOpen

    init(seed: UInt64, byteCount: Int) {
        self.seed = seed
        self.byteCount = byteCount
        super.init(data: Data())
    }

    override var streamStatus: Stream.Status { status }
    override var streamError: (any Error)? { nil }
    override var hasBytesAvailable: Bool { offset < byteCount }
    override func open() { status = .open }
    override func close() { status = .closed }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        // A multiple of 8, as long as it isn't the last.
        let count = byteCount - offset <= maxLength ? byteCount - offset : maxLength & ~7
        unsafe content_fill(seed, UInt64(offset), buffer, count)
        offset += count
        return count
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool { false }
}
