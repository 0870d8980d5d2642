public import Coffer
internal import CofferSealing
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Searches files for text that should not be readable in them.
///
/// Each marker is searched as UTF-8, as UTF-16 in both byte orders, as hex in lower and upper case, and as base64 (RFC
/// 4648, both alphabets) wherever in a longer base64 text it stands. Searched are all regular files below a
/// directory, whatever they are called, and the names of all files and directories. Links are not followed, and of a sparse
/// file only its data are read.
///
/// Memory is bounded: a mebibyte and some, whatever the size of the files. A marker should occur nowhere else; one of fewer
/// than 8 bytes is refused, since what is random holds it by chance.
public struct LeakScan: Sendable {
    /// How a marker is written where it was found.
    public enum Encoding: String, Sendable, CaseIterable {
        case utf8 = "UTF-8"
        case utf16LittleEndian = "UTF-16LE"
        case utf16BigEndian = "UTF-16BE"
        case hex, base64
    }

    /// A place where a marker can be read.
    public struct Leak: Hashable, Sendable, CustomStringConvertible {
        /// The file or directory, from where the search began; its own name when that is a file.
        public let path: String
        /// Which of the markers, from 0.
        public let marker: Int
        /// How it is written there.
        public let encoding: Encoding
        /// The first byte of the first occurrence; nil when it is in the name.
        public let offset: Int?
        /// How many occurrences of this marker in this encoding there are in the file.
        public internal(set) var count: Int

        /// Says where, and not what.
        public var description: String {
            let place = offset.map { "at byte \($0)\(count > 1 ? " and \(count - 1) more" : "")" } ?? "in its name"
            return "\(path): marker \(marker + 1) as \(encoding.rawValue) \(place)"
        }
    }

    /// The result of a search, and how much was searched.
    public struct Report: Sendable {
        /// The places where markers can be read: one for each file, marker and encoding, in the order of paths.
        public internal(set) var leaks: [Leak] = []
        /// How many files were read.
        public internal(set) var fileCount = 0
        /// How many bytes of them were read: their data.
        public internal(set) var byteCount = 0
        /// How many bytes their holes have, which read as zeros and were not read.
        public internal(set) var holeByteCount = 0
        /// Entries that were skipped: links, which aren't followed, FIFOs, sockets and devices.
        public internal(set) var skipped: [SkippedEntry] = []
        /// Whether all files there were read. False where folders are nested too deep: ``skipped`` has them.
        public internal(set) var isComplete = true
    }

    /// The shortest marker, in bytes of UTF-8.
    public static let minimumMarkerByteCount = 8

    let needles: [Needle]

    /// A search for any of `markers`.
    ///
    /// - Throws: `invalidArgument` (400) when there isn't one, or one has fewer than 8 bytes.
    public init(for markers: [String]) throws(CofferError) {
        guard !markers.isEmpty, markers.allSatisfy({ $0.utf8.count >= Self.minimumMarkerByteCount }) else {
            throw CofferError(
                .invalidArgument,
                "a marker has at least \(Self.minimumMarkerByteCount) bytes: shorter ones occur by chance")
        }
        needles = markers.enumerated().flatMap { Needle.all(of: $1, marker: $0) }
    }
}

/// Bytes that a marker is written as.
struct Needle: Sendable {
    let marker: Int
    let encoding: LeakScan.Encoding
    let bytes: [UInt8]

    /// The ways to write `text`, each once.
    static func all(of text: String, marker: Int) -> [Needle] {
        let bytes = Array(text.utf8)
        let units = Array(text.utf16)
        let hex = hexadecimal(bytes)
        var needles = [
            Needle(marker: marker, encoding: .utf8, bytes: bytes),
            Needle(
                marker: marker, encoding: .utf16LittleEndian,
                bytes: units.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }),
            Needle(
                marker: marker, encoding: .utf16BigEndian, bytes: units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }),
        ]
        needles += Set([hex, hex.uppercased()]).sorted()
            .map { Needle(marker: marker, encoding: .hex, bytes: Array($0.utf8)) }
        needles += Set((0..<3).flatMap { base64(of: bytes, after: $0) }).sorted()
            .map { Needle(marker: marker, encoding: .base64, bytes: Array($0.utf8)) }
        return needles
    }

    /// What of `bytes` stands in any base64 text where `shift` bytes, more or less three, come before them.
    ///
    /// The characters at either end also hold bits of what is beside the marker, and are left out.
    private static func base64(of bytes: [UInt8], after shift: Int) -> [String] {
        let text = Data([UInt8](repeating: 0, count: shift) + bytes).base64EncodedString()
        let first = (8 * shift + 5) / 6, end = 8 * (shift + bytes.count) / 6
        let inner = String(text.dropFirst(first).prefix(end - first))
        return [inner, inner.replacing("+", with: "-").replacing("/", with: "_")]
    }
}

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
