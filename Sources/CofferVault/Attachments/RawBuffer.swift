/// Memory of one's own, uninitialized at first.
@safe struct RawBuffer: ~Copyable, @unchecked Sendable {
    // Sendable: nobody else has the pointer, and where threads share a buffer it is in a lock
    // (test: "An attachment's content is read by many threads at once").
    private let start: UnsafeMutableRawPointer
    let byteCount: Int

    static let alignment = 4096

    init(byteCount: Int) {
        unsafe start = .allocate(byteCount: byteCount, alignment: Self.alignment)
        self.byteCount = byteCount
    }

    deinit { unsafe start.deallocate() }

    /// Valid for as long as this value lives.
    subscript(range: Range<Int>) -> UnsafeMutableRawBufferPointer {
        precondition(range.lowerBound >= 0 && range.upperBound <= byteCount, "outside of the buffer")
        return unsafe UnsafeMutableRawBufferPointer(start: start + range.lowerBound, count: range.count)
    }
}
