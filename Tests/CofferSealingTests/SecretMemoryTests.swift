#if os(Linux)
import Glibc
import Testing

@testable import CofferSealing

/// Looks for keys in all of a process's memory, in a process of its own.
@Suite("Keys in memory", .enabled(if: access("/proc/self/mem", R_OK) == 0, "no /proc/self/mem to look at"))
struct SecretMemoryTests {
    @Test("a random key is there once, after use too, and nowhere once its life ends")
    func randomKey() async {
        await #expect(processExitsWith: .success) {
            var key: SymmetricKey? = SymmetricKey()
            let needle = Needle(key)
            guard needle.occurrences() == 1 else { throw Miscount(needle.occurrences(), "after it was made") }
            try SecretMemoryTests.use(key)
            guard needle.occurrences() == 1 else { throw Miscount(needle.occurrences(), "after it was used") }
            key = nil
            guard needle.occurrences() == 0 else { throw Miscount(needle.occurrences(), "after its life ended") }
        }
    }

    @Test("a page of secret bytes is there once, and nowhere once its life ends, on every path")
    func secretBytes() async {
        await #expect(processExitsWith: .success) {
            // The last bytes of a page: in a shorter block the allocator's own notes can overwrite what is left.
            var secret: SecretBytes? = try randomSecret(byteCount: 4096)
            let needle = Needle(secret?.withBytes { Needle.hide($0) } ?? [])
            guard needle.occurrences() == 1 else { throw Miscount(needle.occurrences(), "after it was made") }
            secret = nil
            guard needle.occurrences() == 0 else { throw Miscount(needle.occurrences(), "after its life ended") }

            var refused: Needle?
            do {
                _ = try SecretBytes(byteCount: 4096) { bytes throws(CofferError) in
                    for index in bytes.indices { bytes[index] = UInt8.random(in: 0...255) }
                    let needle = Needle(Needle.hide(UnsafeRawBufferPointer(bytes)))
                    guard needle.occurrences() == 1 else { return }
                    refused = needle
                    throw CofferError(.cancelled)
                }
            } catch {}
            guard refused?.occurrences() == 0 else {
                throw Miscount(refused?.occurrences() ?? -1, "after it was refused")
            }
        }
    }

    @Test("a derived and an unwrapped key are there once, and nowhere once their lives end")
    func derivedKey() async {
        await #expect(processExitsWith: .success) {
            let master = SymmetricKey()
            for _ in 0..<2 {
                let wrapped = try master.wrap(SymmetricKey())
                for make in [
                    { try master.derivedKey(by: .hkdfExpandSHA256(info: [1])) },
                    { try master.derivedKey(by: .hkdfExpandSHA512(info: [1])) },
                    { try master.derivedKey(by: .hkdfSHA256(salt: [2], info: [1])) },
                    { try master.unwrap(wrapped) },
                    {
                        try SymmetricKey(password: "password").derivedKey(by: .scrypt(log2N: 10, r: 8, p: 1, salt: [3]))
                    },
                    { try SymmetricKey(password: "p").derivedKey(by: .pbkdf2SHA512(iterations: 100_000, salt: [4])) },
                ] as [() throws -> SymmetricKey?] {
                    var key = try make()
                    let needle = Needle(key)
                    guard needle.occurrences() == 1 else { throw Miscount(needle.occurrences(), "after it was made") }
                    key = nil
                    guard needle.occurrences() == 0 else {
                        throw Miscount(needle.occurrences(), "after its life ended")
                    }
                }
            }
        }
    }

    @Test("a message's key is nowhere once the message is sealed or opened, or refused")
    func messageKey() async {
        await #expect(processExitsWith: .success) {
            let key = SymmetricKey(), salt = [UInt8](repeating: 3, count: 24)
            let label = Array("c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0".utf8)
            let needle = Needle(try key.derivedKey(by: .hkdfExpandSHA512(info: label + salt)))
            guard needle.occurrences() == 0 else { throw Miscount(needle.occurrences(), "before any message") }
            for _ in 0..<2 {
                let header = try SecretMemoryTests.sealOne(key, salt: salt, needle)
                try SecretMemoryTests.openOne(key, header, needle)
                var changed = header
                changed[55] ^= 1
                guard try CobblestoneDecryptor(key: key, context: [], header: changed) == nil else { exit(1) }
                guard needle.occurrences() == 0 else { throw Miscount(needle.occurrences(), "after a wrong header") }
            }
        }
    }

    fileprivate static func sealOne(_ key: SymmetricKey, salt: [UInt8], _ needle: Needle) throws -> [UInt8] {
        func header() throws -> [UInt8] {
            var encryptor = try CobblestoneEncryptor(key: key, context: [], salt: salt)
            _ = try encryptor.seal([1, 2, 3], isLast: true)
            try expectInUse(needle)
            return encryptor.header
        }
        let result = try header()
        guard needle.occurrences() == 0 else { throw Miscount(needle.occurrences(), "after sealing") }
        return result
    }

    fileprivate static func openOne(_ key: SymmetricKey, _ header: [UInt8], _ needle: Needle) throws {
        func open() throws {
            guard var decryptor = try CobblestoneDecryptor(key: key, context: [], header: header) else { exit(1) }
            _ = try decryptor.open([UInt8](repeating: 1, count: 100), index: 0)
            try expectInUse(needle)
        }
        try open()
        guard needle.occurrences() == 0 else { throw Miscount(needle.occurrences(), "after opening") }
    }

    /// OpenSSL's context alone has the key, where an AES key schedule begins with it.
    private static func expectInUse(_ needle: Needle) throws {
        #if arch(x86_64)
        guard needle.occurrences() == 1 else { throw Miscount(needle.occurrences(), "while it is in use") }
        #endif
    }

    @Test("the search finds a copy that somebody left, until it is overwritten")
    func control() async {
        await #expect(processExitsWith: .success) {
            let key: SymmetricKey? = SymmetricKey()
            let needle = Needle(key)
            var copy = key?.withBytes { Array($0) } ?? []
            guard needle.occurrences() == 2 else { throw Miscount(needle.occurrences(), "with a copy") }
            copy[31] ^= 1
            guard needle.occurrences() == 1 else { throw Miscount(needle.occurrences(), "with a changed copy") }
        }
    }

    fileprivate static func use(_ key: SymmetricKey?) throws {
        guard let key else { return }
        let wrapped = try key.wrap(SymmetricKey())
        _ = try key.unwrap(wrapped)
        _ = try SymmetricKey().unwrap(wrapped)
        _ = try key.authenticationCode(for: [1, 2, 3])
        _ = try key.derivedKey(by: .hkdfExpandSHA256(info: [1]))
        _ = key == SymmetricKey()
        _ = "\(key)"
    }
}

private struct Miscount: Error {
    init(_ count: Int, _ when: String) { print("\(count) copies \(when)") }
}

/// Counts the copies of a key in this process's writable memory.
///
/// It holds the key's second half alone (the first 16 bytes of a freed block are the allocator's), and that changed, so
/// that it doesn't find itself. What a search needs is allocated beforehand: it must not reuse the block that the key
/// left.
private final class Needle {
    private let hidden: [UInt8]
    private let maps = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    private let window = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    private var ranges: [Range<Int>] = []
    private static let mask: UInt8 = 0x5a

    convenience init(_ key: SymmetricKey?) { self.init(key?.withBytes { Self.hide($0) } ?? []) }

    static func hide(_ bytes: UnsafeRawBufferPointer) -> [UInt8] { bytes.suffix(16).map { $0 ^ mask } }

    init(_ hidden: [UInt8]) {
        self.hidden = hidden
        ranges.reserveCapacity(10_000)
    }

    deinit {
        maps.deallocate()
        window.deallocate()
    }

    func occurrences() -> Int {
        findWritableRanges()
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        defer { close(memory) }
        var count = 0
        for range in ranges {
            var offset = range.lowerBound
            while offset < range.upperBound {
                let got = pread(memory, window.baseAddress, min(window.count, range.upperBound - offset), offset)
                guard got >= hidden.count else { break }  // the end of the range, or not readable
                count += occurrences(inWindowOf: got)
                // Windows overlap by less than a needle: none is missed, none found twice.
                offset += got - hidden.count + 1
            }
        }
        return count
    }

    private func occurrences(inWindowOf byteCount: Int) -> Int {
        guard let start = window.baseAddress, let first = hidden.first else { return 0 }
        var count = 0
        var position = 0
        while position + hidden.count <= byteCount,
            let found = memchr(start + position, Int32(first ^ Self.mask), byteCount - position - hidden.count + 1)
        {
            position = found - start
            if (0..<hidden.count).allSatisfy({ window[position + $0] == hidden[$0] ^ Self.mask }) { count += 1 }
            position += 1
        }
        return count
    }

    /// Reads `/proc/self/maps`, lines of `start-end rw…`, and leaves the window itself out.
    private func findWritableRanges() {
        ranges.removeAll(keepingCapacity: true)
        let file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        var length = 0
        while case let got = read(file, maps.baseAddress.map { $0 + length }, maps.count - length), got > 0 {
            length += got
        }
        let own = Int(bitPattern: window.baseAddress)..<Int(bitPattern: window.baseAddress) + window.count
        var position = 0
        while position < length {
            let start = hexNumber(at: &position)
            let end = hexNumber(at: &position)
            let isWritable = maps[position] == UInt8(ascii: "r") && maps[position + 1] == UInt8(ascii: "w")
            while position < length, maps[position] != UInt8(ascii: "\n") { position += 1 }
            position += 1
            // Larger ones are a sanitizer's notes about memory, which hold no content.
            guard isWritable, end - start < 1 << 30 else { continue }
            let range = start..<end
            if own.overlaps(range) {
                ranges.append(range.lowerBound..<own.lowerBound)
                ranges.append(own.upperBound..<range.upperBound)
            } else {
                ranges.append(range)
            }
        }
    }

    /// The number at `position` of the maps, which then is behind the character that ends it.
    private func hexNumber(at position: inout Int) -> Int {
        var number = 0
        while true {
            let byte = maps[position]
            position += 1
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | Int(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | Int(byte - UInt8(ascii: "a") + 10)
            default: return number
            }
        }
    }
}
#endif
