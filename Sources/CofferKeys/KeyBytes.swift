internal import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The bytes of a key or password on their way from where it is kept to the library.
///
/// They lie in memory that the system doesn't swap out as far as it allows that, 64 KiB often, and are overwritten when their life
/// ends. The buffer grows with them, so that a short key takes one page of that memory.
@_spi(Tool) @safe public struct KeyBytes: ~Copyable {
    /// No password is longer: a source that goes on after this many bytes is another file than was meant.
    public static let maximumByteCount = 65_536

    private var storage = SecretBytes(byteCount: firstCapacity)

    /// A page of memory, less what nobody needs of it.
    private static let firstCapacity = 4_096

    /// How many bytes there are.
    public private(set) var byteCount = 0

    /// No bytes so far.
    public init() {}

    /// Those bytes, copied.
    public init(_ bytes: UnsafeRawBufferPointer) throws(KeySourceError) {
        try Self.check(byteCount: bytes.count)
        reserve(bytes.count)
        unsafe storage.withMutableBytes { unsafe $0.copyMemory(from: bytes) }
        byteCount = bytes.count
    }

    /// Has room for so many bytes in all. What moves leaves nothing behind.
    private mutating func reserve(_ count: Int) {
        guard count > storage.byteCount else { return }
        var larger = SecretBytes(byteCount: min(max(count, 4 * storage.byteCount), Self.maximumByteCount + 1))
        unsafe storage.withBytes { old in unsafe larger.withMutableBytes { unsafe $0.copyMemory(from: old) } }
        storage = larger
    }

    /// Lends the bytes to `body`.
    public func withBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try unsafe storage.withBytes { bytes throws(E) in
            try unsafe body(UnsafeRawBufferPointer(rebasing: bytes[..<byteCount]))
        }
    }

    /// The byte at that position, from 0 on.
    public subscript(position: Int) -> UInt8 { unsafe storage.withBytes { unsafe $0[position] } }

    /// Appends one byte.
    public mutating func append(_ byte: UInt8) throws(KeySourceError) {
        try Self.check(byteCount: byteCount + 1)
        reserve(byteCount + 1)
        unsafe storage.withMutableBytes { unsafe $0[byteCount] = byte }
        byteCount += 1
    }

    /// Appends what `body` writes to the room that is left of the most bytes, which returns its length, or less than 0.
    mutating func append(_ body: (UnsafeMutableRawBufferPointer) -> Int) -> Int {
        reserve(Self.maximumByteCount + 1)
        let count = unsafe withRoom(upTo: storage.byteCount) { unsafe body($0) }
        if count > 0 { byteCount += min(count, storage.byteCount - byteCount) }
        return count
    }

    /// Lends the bytes from the last one up to `end` for writing.
    private mutating func withRoom<R>(upTo end: Int, _ body: (UnsafeMutableRawBufferPointer) -> R) -> R {
        let start = byteCount
        return unsafe storage.withMutableBytes { bytes in
            unsafe body(UnsafeMutableRawBufferPointer(rebasing: bytes[start..<end]))
        }
    }

    /// Overwrites and drops the last `count` bytes.
    public mutating func dropLast(_ count: Int) {
        byteCount -= count
        _ = unsafe withRoom(upTo: byteCount + count) { unsafe $0.initializeMemory(as: UInt8.self, repeating: 0) }
    }

    /// Appends what `descriptor` holds up to its end. `name` is what messages call it. What `wait` throws ends it.
    public mutating func appendContents(
        of descriptor: Int32, named name: String, waiting wait: KeySource.Wait = { _ in }
    ) throws {
        while true {
            try wait(descriptor)
            reserve(byteCount + 1)
            let count = unsafe withRoom(upTo: storage.byteCount) { unsafe read(descriptor, $0.baseAddress, $0.count) }
            if count == 0 { return }
            if count > 0 {
                try Self.check(byteCount: byteCount + count)
                byteCount += count
            } else if errno != EINTR {
                throw KeySourceError.unavailable(SystemError.message(errno, name))
            }
        }
    }

    /// Appends the next `count` bytes of `descriptor`. `name` is what messages call it.
    public mutating func append(_ count: Int, of descriptor: Int32, named name: String) throws(KeySourceError) {
        try Self.check(byteCount: byteCount + count)
        let end = byteCount + count
        reserve(end)
        while byteCount < end {
            let count = unsafe withRoom(upTo: end) { unsafe read(descriptor, $0.baseAddress, $0.count) }
            guard count != 0 else { throw KeySourceError.unavailable("\(name) ends too early") }
            if count > 0 {
                byteCount += count
            } else if errno != EINTR {
                throw KeySourceError.unavailable(SystemError.message(errno, name))
            }
        }
    }

    private static func check(byteCount: Int) throws(KeySourceError) {
        guard byteCount <= maximumByteCount else {
            throw tooLong
        }
    }

    static let tooLong = KeySourceError.unusable("a key has at most \(maximumByteCount) bytes")
}
