internal import Coffer

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

extension LeakScan {
    /// Searches pieces of any size, which follow each other, or come after a gap that nothing is looked for in.
    ///
    /// `next` gives the next piece, or nil after the last one.
    func leaks(called name: String, next: () throws(CofferError) -> Piece?) throws(CofferError) -> [Leak] {
        var found: [Int: Leak] = [:]
        // Pieces overlap by less than a needle, so that none is missed and none is found twice.
        var window: [UInt8] = []
        var start = 0
        while let piece = try next() {
            if piece.offset != start + window.count {
                window = []
                start = piece.offset
            }
            window += piece.bytes
            for (number, needle) in needles.enumerated() {
                // What lies wholly in the part that the last piece had too was counted then.
                let searched = max(0, window.count - piece.bytes.count - (needle.bytes.count - 1))
                for offset in Self.occurrences(of: needle.bytes, in: window, from: searched) {
                    let leak = Leak(
                        path: name, marker: needle.marker, encoding: needle.encoding, offset: start + offset, count: 0)
                    found[number, default: leak].count += 1
                }
            }
            let kept = min(window.count, overlap)
            start += window.count - kept
            window.removeFirst(window.count - kept)
        }
        return merged(found.values)
    }

    /// One byte less than the longest way to write a marker.
    var overlap: Int { (needles.map(\.bytes.count).max() ?? 1) - 1 }

    /// One for each marker and encoding: there are several needles for hex and base64.
    private func merged(_ leaks: some Collection<Leak>) -> [Leak] {
        var merged: [[Int]: Leak] = [:]
        for leak in leaks.sorted(by: { ($0.offset ?? 0) < ($1.offset ?? 0) }) {
            let order = [leak.marker, Encoding.allCases.firstIndex(of: leak.encoding) ?? 0]
            if var first = merged[order] {
                first.count += leak.count
                merged[order] = first
            } else {
                merged[order] = leak
            }
        }
        return merged.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
    }

    /// Searches a name for what is written in it.
    func leaks(inName name: [UInt8], path: String) -> [Leak] {
        let found = needles.filter { !Self.occurrences(of: $0.bytes, in: name, from: 0).isEmpty }
        let leaks = found.map { Leak(path: path, marker: $0.marker, encoding: $0.encoding, offset: nil, count: 1) }
        return merged(Set(leaks))
    }

    /// Where `needle` begins in `bytes`, at `start` or later.
    static func occurrences(of needle: [UInt8], in bytes: [UInt8], from start: Int) -> [Int] {
        guard let first = needle.first else { return [] }
        return unsafe bytes.withUnsafeBytes { bytes in
            unsafe needle.withUnsafeBytes { needle in
                guard let base = bytes.baseAddress, let sought = needle.baseAddress else { return [] }
                var offsets: [Int] = []
                var position = start
                while position + needle.count <= bytes.count,
                    let candidate = unsafe memchr(
                        base + position, Int32(first), bytes.count - position - needle.count + 1)
                {
                    position = unsafe UnsafeRawPointer(candidate) - base
                    if unsafe memcmp(candidate, sought, needle.count) == 0 { offsets.append(position) }
                    position += 1
                }
                return offsets
            }
        }
    }
}
