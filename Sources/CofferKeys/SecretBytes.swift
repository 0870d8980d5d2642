#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The bytes of a secret on their way from where it is kept to the library: one buffer, overwritten when its life ends.
@_spi(Tool) @safe public struct SecretBytes: ~Copyable {
    /// No password is longer: a source that goes on after this many bytes is another file than was meant.
    public static let maximumByteCount = 65_536

    private let storage = UnsafeMutableRawBufferPointer.allocate(byteCount: maximumByteCount + 1, alignment: 1)

    /// How many bytes there are.
    public private(set) var byteCount = 0

    /// No bytes so far.
    public init() {}

    /// Those bytes, copied.
    public init(_ bytes: UnsafeRawBufferPointer) throws(KeySourceError) {
        try Self.check(byteCount: bytes.count)
        unsafe storage.copyMemory(from: bytes)
        byteCount = bytes.count
    }

    deinit {
        #if canImport(Glibc)
        if let start = unsafe storage.baseAddress { unsafe explicit_bzero(start, storage.count) }
        #else
        if let start = unsafe storage.baseAddress { unsafe memset_s(start, storage.count, 0, storage.count) }
        #endif
        unsafe storage.deallocate()
    }

    /// Lends the bytes to `body`.
    public func withBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try unsafe body(UnsafeRawBufferPointer(rebasing: storage[..<byteCount]))
    }

    /// The byte at that position, from 0 on.
    public subscript(position: Int) -> UInt8 { unsafe storage[position] }

    /// Appends one byte.
    public mutating func append(_ byte: UInt8) throws(KeySourceError) {
        try Self.check(byteCount: byteCount + 1)
        unsafe storage[byteCount] = byte
        byteCount += 1
    }

    /// Appends what `body` writes to the room that is left, which returns its length, or less than 0.
    mutating func append(_ body: (UnsafeMutableRawBufferPointer) -> Int) -> Int {
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: storage[byteCount...])
        let count = unsafe body(room)
        if count > 0 { byteCount += min(count, room.count) }
        return count
    }

    /// Overwrites and drops the last `count` bytes.
    public mutating func dropLast(_ count: Int) {
        byteCount -= count
        unsafe UnsafeMutableRawBufferPointer(rebasing: storage[byteCount..<(byteCount + count)]).initializeMemory(
            as: UInt8.self, repeating: 0)
    }

    /// Appends what `descriptor` holds up to its end. `name` is what messages call it. What `wait` throws ends it.
    public mutating func appendContents(
        of descriptor: Int32, named name: String, waiting wait: KeySource.Wait = { _ in }
    ) throws {
        while true {
            try wait(descriptor)
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: storage[byteCount...])
            let count = unsafe read(descriptor, rest.baseAddress, rest.count)
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
        while byteCount < end {
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: storage[byteCount..<end])
            let count = unsafe read(descriptor, rest.baseAddress, rest.count)
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
