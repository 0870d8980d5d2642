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
        let pages = max(1, (byteCount + LockedPages.byteCount - 1) / LockedPages.byteCount)
        self.byteCount = byteCount
        lockedByteCount = pages * LockedPages.byteCount
        unsafe start = LockedPages.take(lockedByteCount)
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
        if lockedByteCount > 0 {
            unsafe LockedPages.giveBack(start, lockedByteCount)
        } else {
            unsafe start.deallocate()
        }
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
}

/// Memory of whole pages that is locked as far as the system allows.
///
/// A few single pages stay locked between one secret and the next: locking one and unlocking it again is two changes of the
/// kernel's map of the process. Opening a store takes a twentieth less without them.
private enum LockedPages {
    static let byteCount = Int(sysconf(Int32(_SC_PAGESIZE)))

    /// How many pages are kept for the next secrets: 64 KiB, which is often all that the system lets a process lock. Secrets
    /// take these before any others.
    private static let idleLimit = 16

    /// Where the pages begin that nobody has. What was in them has been overwritten.
    private static let idle = Lock<[UInt]>([])

    /// So many bytes of whole pages, with anything in them.
    static func take(_ byteCount: Int) -> UnsafeMutableRawPointer {
        let kept = byteCount == Self.byteCount ? idle.withLock { $0.popLast() } : nil
        let start =
            unsafe kept.flatMap { unsafe UnsafeMutableRawPointer(bitPattern: $0) }
            ?? .allocate(byteCount: byteCount, alignment: Self.byteCount)
        // A kept page, too, which may have come when the limit was reached: where it is locked, this changes nothing.
        _ = unsafe mlock(start, byteCount)
        return unsafe start
    }

    /// Takes back what ``take(_:)`` gave, overwritten.
    static func giveBack(_ start: UnsafeMutableRawPointer, _ byteCount: Int) {
        let isKept =
            byteCount == Self.byteCount
            && idle.withLock { idle in
                guard idle.count < idleLimit else { return false }
                idle.append(UInt(bitPattern: start))
                return true
            }
        guard !isKept else { return }
        _ = unsafe munlock(start, byteCount)
        unsafe start.deallocate()
    }
}
