#if canImport(Darwin)
internal import Darwin
#else
internal import Glibc
#endif

/// A fixed number of secret bytes in one buffer of its own, overwritten when its life ends on any path.
///
/// The buffer never moves and is never copied; the bytes are lent to a closure and must not leave it, except into another
/// `SecretBytes`. It fills whole memory pages, so that locking it (best effort: the limit is often 64 KiB) keeps it out of
/// swap, and unlocking it unlocks no other secret. What lasts for microseconds alone does without that.
@safe package struct SecretBytes: ~Copyable, @unchecked Sendable {
    // Sendable: nobody else has the pointer, reading borrows the struct and writing mutates it (test: "Threads that take turns with a digest, a cipher and a secret get what one thread would").
    private let start: UnsafeMutableRawPointer
    private let lockedByteCount: Int
    package let byteCount: Int

    package enum Lifetime: Sendable {
        /// Held for as long as a store is open, say.
        case long
        /// On the way to an OpenSSL context, which keeps what it is given in memory that is not locked either. Locking
        /// costs more than deriving the bytes.
        case momentary
    }

    /// `byteCount` zero bytes, to be filled in place.
    package init(byteCount: Int, lifetime: Lifetime = .long) {
        precondition(byteCount >= 0, "a secret can't have \(byteCount) bytes")
        guard lifetime == .long else {
            self.byteCount = byteCount
            lockedByteCount = 0
            unsafe start = .allocate(byteCount: max(1, byteCount), alignment: 16)
            unsafe start.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
            return
        }
        let pages = max(1, (byteCount + Self.pageByteCount - 1) / Self.pageByteCount)
        self.byteCount = byteCount
        lockedByteCount = pages * Self.pageByteCount
        unsafe start = .allocate(byteCount: lockedByteCount, alignment: Self.pageByteCount)
        _ = unsafe mlock(start, lockedByteCount)
        unsafe start.initializeMemory(as: UInt8.self, repeating: 0, count: lockedByteCount)
    }

    /// `byteCount` bytes, which `fill` finds zeroed and overwrites; if it throws, what it wrote is wiped.
    package init<E: Error>(
        byteCount: Int, lifetime: Lifetime = .long,
        filledBy fill: (UnsafeMutableRawBufferPointer) throws(E) -> Void
    ) throws(E) {
        self.init(byteCount: byteCount, lifetime: lifetime)
        try unsafe fill(UnsafeMutableRawBufferPointer(start: start, count: byteCount))
    }

    deinit {
        unsafe wipe(UnsafeMutableRawBufferPointer(start: start, count: byteCount))
        if lockedByteCount > 0 { _ = unsafe munlock(start, lockedByteCount) }
        unsafe start.deallocate()
    }

    /// Lends the bytes to `body`.
    package borrowing func withBytes<R: ~Copyable, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try unsafe body(UnsafeRawBufferPointer(start: start, count: byteCount))
    }

    /// Lends the bytes to `body` for writing.
    package mutating func withMutableBytes<R: ~Copyable, E: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try unsafe body(UnsafeMutableRawBufferPointer(start: start, count: byteCount))
    }

    private static let pageByteCount = Int(sysconf(Int32(_SC_PAGESIZE)))
}
