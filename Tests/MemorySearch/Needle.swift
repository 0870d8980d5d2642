#if os(Linux)
import CofferSealing
import Glibc

/// Counts the copies of a key in this process's writable memory.
///
/// It holds the key's second half alone (the first 16 bytes of a freed block are the allocator's), and that changed, so
/// that it doesn't find itself. What a search needs is allocated beforehand: it must not reuse the block that the key
/// left.
package final class Needle {
    private let hidden: [UInt8]
    private let maps = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    private let window = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    private var ranges: [Range<Int>] = []
    private static let mask: UInt8 = 0x5a

    package convenience init(_ key: SymmetricKey?) { self.init(key?.withBytes { Self.hide($0) } ?? []) }

    package static func hide(_ bytes: UnsafeRawBufferPointer) -> [UInt8] { bytes.suffix(16).map { $0 ^ mask } }

    package init(_ hidden: [UInt8]) {
        self.hidden = hidden
        ranges.reserveCapacity(10_000)
    }

    deinit {
        maps.deallocate()
        window.deallocate()
    }

    package func occurrences() -> Int {
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
            guard own.overlaps(range) else {
                ranges.append(range)
                continue
            }
            // The window may stand across two of them, and where other threads map memory it does now and then.
            if range.lowerBound < own.lowerBound { ranges.append(range.lowerBound..<own.lowerBound) }
            if own.upperBound < range.upperBound { ranges.append(own.upperBound..<range.upperBound) }
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
