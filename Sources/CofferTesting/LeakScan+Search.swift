public import Coffer
public import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

extension LeakScan {
    /// Searches all files below `url`, or the one file that it is.
    ///
    /// A file that is removed meanwhile is left out.
    ///
    /// - Throws: `ioFailed` (500) for what can't be read, or when nothing is there.
    public func search(_ url: URL) throws(CofferError) -> Report {
        var report = Report()
        let root = url.path(percentEncoded: false)
        guard let kind = kind(of: root) else {
            throw CofferError(.ioFailed, of: url.lastPathComponent, "there is no such file or directory")
        }
        search(name: url.lastPathComponent, &report)
        guard kind == .typeDirectory else {
            try search(file: root, called: url.lastPathComponent, &report)
            return report
        }
        do {
            for name in try FileManager.default.subpathsOfDirectory(atPath: root).sorted() {
                search(name: name, &report)
                let path = url.appending(path: name).path(percentEncoded: false)
                if self.kind(of: path) == .typeRegular { try search(file: path, called: name, &report) }
            }
        } catch let error as CofferError {
            throw error
        } catch {
            throw CofferError(.ioFailed, of: url.lastPathComponent, "it can't be listed", cause: error)
        }
        return report
    }

    /// Searches bytes that are in memory, in pieces of any size.
    ///
    /// `next` gives the next piece, or nil after the last one.
    func leaks(called name: String, next: () throws(CofferError) -> [UInt8]?) throws(CofferError) -> [Leak] {
        var found: [Int: Leak] = [:]
        // Pieces overlap by less than a needle, so that none is missed and none is found twice.
        var window: [UInt8] = []
        var start = 0
        while let piece = try next() {
            window += piece
            for (number, needle) in needles.enumerated() {
                // What lies wholly in the part that the last piece had too was counted then.
                let searched = max(0, window.count - piece.count - (needle.bytes.count - 1))
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

    private var overlap: Int { (needles.map(\.bytes.count).max() ?? 1) - 1 }

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

    private func search(name: String, _ report: inout Report) {
        // Only the last part: each directory is searched by itself.
        let bytes = Array((name.split(separator: "/").last ?? "").utf8)
        let found = needles.filter { !Self.occurrences(of: $0.bytes, in: bytes, from: 0).isEmpty }
        let leaks = found.map { Leak(path: name, marker: $0.marker, encoding: $0.encoding, offset: nil, count: 1) }
        report.leaks += merged(Set(leaks))
    }

    private func search(file path: String, called name: String, _ report: inout Report) throws(CofferError) {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT { return }
            throw CofferError(.ioFailed, of: name, "it can't be opened: \(systemError(errno))")
        }
        defer { close(file) }
        var byteCount = 0
        let leaks = try leaks(called: name) { () throws(CofferError) in
            let piece = try Self.nextPiece(of: file, name)
            byteCount += piece?.count ?? 0
            return piece
        }
        report.leaks += leaks
        report.fileCount += 1
        report.byteCount += byteCount
    }

    private static func nextPiece(of file: Int32, _ name: String) throws(CofferError) -> [UInt8]? {
        var failure: Int32 = 0
        let piece = unsafe [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
            var got = 0
            repeat { got = unsafe read(file, buffer.baseAddress, buffer.count) } while got < 0 && errno == EINTR
            failure = got < 0 ? errno : 0
            count = max(0, got)
        }
        guard failure == 0 else {
            throw CofferError(.ioFailed, of: name, "it can't be read: \(systemError(failure))")
        }
        return piece.isEmpty ? nil : piece
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

    private func kind(of path: String) -> FileAttributeType? {
        try? FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
    }
}

private func systemError(_ number: Int32) -> String { unsafe String(cString: strerror(number)) }
