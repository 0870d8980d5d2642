#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The bytes of a secret on their way from where it is kept to the library: one buffer, overwritten when its life ends.
@safe struct SecretBytes: ~Copyable {
    /// No password is longer: a source that goes on after this many bytes is another file than was meant.
    static let maximumByteCount = 65_536

    private let storage = UnsafeMutableRawBufferPointer.allocate(byteCount: maximumByteCount + 1, alignment: 1)

    /// How many bytes there are.
    private(set) var byteCount = 0

    init() {}

    /// Those bytes, copied.
    init(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
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
    func withBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try unsafe body(UnsafeRawBufferPointer(rebasing: storage[..<byteCount]))
    }

    subscript(position: Int) -> UInt8 { unsafe storage[position] }

    mutating func append(_ byte: UInt8) throws(Failure) {
        try Self.check(byteCount: byteCount + 1)
        unsafe storage[byteCount] = byte
        byteCount += 1
    }

    /// Overwrites and drops the last `count` bytes.
    mutating func dropLast(_ count: Int) {
        byteCount -= count
        unsafe UnsafeMutableRawBufferPointer(rebasing: storage[byteCount..<(byteCount + count)]).initializeMemory(
            as: UInt8.self, repeating: 0)
    }

    /// Appends what `descriptor` holds up to its end, unless a signal comes first. `name` is what messages call it.
    mutating func appendContents(of descriptor: Int32, named name: String) throws(Failure) {
        while true {
            try Interruption.waitForInput(from: descriptor)
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: storage[byteCount...])
            let count = unsafe read(descriptor, rest.baseAddress, rest.count)
            if count == 0 { return }
            if count > 0 {
                try Self.check(byteCount: byteCount + count)
                byteCount += count
            } else if errno != EINTR {
                throw Failure.keyUnavailable(Failure.system(errno, name).message)
            }
        }
    }

    /// Appends the next `count` bytes of `descriptor`. `name` is what messages call it.
    mutating func append(_ count: Int, of descriptor: Int32, named name: String) throws(Failure) {
        try Self.check(byteCount: byteCount + count)
        let end = byteCount + count
        while byteCount < end {
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: storage[byteCount..<end])
            let count = unsafe read(descriptor, rest.baseAddress, rest.count)
            guard count != 0 else { throw Failure.keyUnavailable("\(name) ends too early") }
            if count > 0 {
                byteCount += count
            } else if errno != EINTR {
                throw Failure.keyUnavailable(Failure.system(errno, name).message)
            }
        }
    }

    private static func check(byteCount: Int) throws(Failure) {
        guard byteCount <= maximumByteCount else {
            throw Failure.unusableKey("a key has at most \(maximumByteCount) bytes")
        }
    }
}
