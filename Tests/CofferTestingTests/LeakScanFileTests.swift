import Coffer
import CofferVault
import Foundation
import Testing

@testable import CofferTesting

/// Sparse files of terabytes were read to their ends, names that are not UTF-8 were passed over, folders that are nested deep
/// could not be listed, and nothing said what was not searched.
@Suite("A search for plaintext in odd files")
struct LeakScanFileTests {
    let folder = Folder()
    let marker = "the sea at Ostende"

    private func path(_ name: String) -> String { folder.url.appending(path: name).path(percentEncoded: false) }

    /// Makes a file of 8 TiB that has nothing but these bytes.
    private func makeSparse(_ name: String, _ pieces: [(offset: Int, bytes: [UInt8])]) throws {
        let file = open(path(name), O_CREAT | O_RDWR, 0o600)
        try #require(file >= 0)
        defer { close(file) }
        try #require(ftruncate(file, 8 << 40) == 0)
        for piece in pieces {
            try #require(pwrite(file, piece.bytes, piece.bytes.count, off_t(piece.offset)) == piece.bytes.count)
        }
    }

    @Test(
        "A sparse file of terabytes is searched by its data alone, also for what begins or ends in a hole",
        .enabled(if: Sparse.isTold, "needs a file system that tells holes"))
    func sparse() throws {
        let scan = try LeakScan(for: [marker])
        let text = Array(marker.utf8)
        let units: [UInt8] = text.reduce(into: []) { $0 += [0, $1] }
        // The last byte of UTF-16LE, a zero, is the first of a hole; the first of UTF-16BE is the last of one.
        let withoutZeros: [UInt8] = Array(units.dropFirst())
        let littleEndian: Int = (2 << 40) + (1 << 16) - withoutZeros.count
        let end: Int = (8 << 40) - text.count
        try makeSparse("sparse", [(1 << 40, text), (littleEndian, withoutZeros), (3 << 40, withoutZeros), (end, text)])
        let report = try scan.search(folder.url)
        #expect(report.leaks.map(\.encoding) == [.utf8, .utf16LittleEndian, .utf16BigEndian])
        // The same bytes with a zero before or after them: each is there in both byte orders.
        #expect(report.leaks.map(\.offset) == [1 << 40, littleEndian, littleEndian - 1])
        #expect(report.leaks.map(\.count) == [2, 2, 2])
        #expect(report.byteCount < 1 << 20)
        #expect(report.byteCount + report.holeByteCount == 8 << 40)
        #expect(report.fileCount == 1)

        try FileManager.default.removeItem(atPath: path("sparse"))
        try makeSparse("sparse", [])
        let empty = try scan.search(folder.url)
        #expect(empty.leaks.isEmpty)
        #expect(empty.byteCount == 0)
        #expect(empty.holeByteCount == 8 << 40)
    }

    @Test(
        "Files of which the system says no length are read to their ends",
        .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/limits"), "this system has no /proc"))
    func unknownLength() throws {
        let line = try String(contentsOfFile: "/proc/self/limits", encoding: .utf8).prefix(16)
        let report = try LeakScan(for: [String(line)]).search(URL(filePath: "/proc/self/limits"))
        #expect(report.leaks.map(\.offset) == [0])
    }

    @Test(
        "FIFOs, sockets, devices and links are said to be skipped, and nobody waits for them",
        .timeLimit(.minutes(30)))
    func skipped() throws {
        try folder.write(Data("x".utf8), as: "a/file")
        #expect(mkfifo(path("a/fifo"), 0o600) == 0)
        #expect(mknod(path("socket"), S_IFSOCK | 0o600, 0) == 0)
        #expect(symlink("a/file", path("link")) == 0)
        let report = try LeakScan(for: [marker]).search(folder.url)
        #expect(report.fileCount == 1)
        #expect(
            Set(report.skipped) == [
                SkippedEntry(path: "a/fifo", reason: "a FIFO"), SkippedEntry(path: "socket", reason: "a socket"),
                SkippedEntry(path: "link", reason: "a symbolic link"),
            ])
        #expect(report.isComplete)
        let alone = try LeakScan(for: [marker]).search(folder.url.appending(path: "a/fifo"))
        #expect(alone.fileCount == 0)
        #expect(alone.skipped == [SkippedEntry(path: "fifo", reason: "a FIFO")])
        let device = try LeakScan(for: [marker]).search(URL(filePath: "/dev/null"))
        #expect(device.skipped == [SkippedEntry(path: "null", reason: "a device")])
    }

    @Test("A marker is found in a name that is not UTF-8, and in a file of such a name")
    func names() throws {
        let name = Array("\(path(""))/\(marker)".utf8) + [0xFF, 0]
        let file = name.withUnsafeBytes { bytes in
            bytes.baseAddress.map { open($0.assumingMemoryBound(to: CChar.self), O_CREAT | O_WRONLY, 0o600) } ?? -1
        }
        try #require(file >= 0)
        #expect(write(file, marker, marker.utf8.count) == marker.utf8.count)
        close(file)
        let report = try LeakScan(for: [marker]).search(folder.url)
        #expect(report.leaks.map(\.offset) == [nil, 0])
        #expect(report.leaks.map(\.path) == ["\(marker)\\xff", "\(marker)\\xff"])
    }

    @Test("A file below twenty thousand folders is searched with sixteen descriptors", .timeLimit(.minutes(30)))
    func nested() async throws {
        try #require(mkdir(path("tree"), 0o700) == 0)
        var inner = open(path("tree"), O_RDONLY | O_DIRECTORY)
        for _ in 0..<20_000 {
            try #require(mkdirat(inner, "f", 0o700) == 0)
            let next = openat(inner, "f", O_RDONLY | O_DIRECTORY)
            try #require(next >= 0)
            close(inner)
            inner = next
        }
        let file = openat(inner, "letter", O_CREAT | O_WRONLY, 0o600)
        #expect(write(file, marker, marker.utf8.count) == marker.utf8.count)
        close(file)
        close(inner)
        await #expect(processExitsWith: .success) { [url = folder.url as URL, marker = marker as String] in
            limitDescriptors(toFurther: 16)
            let report = try LeakScan(for: [marker]).search(url)
            #expect(report.leaks.map(\.offset) == [0])
            #expect(report.leaks.first?.path.hasSuffix("/…/" + String(repeating: "f/", count: 64) + "letter") == true)
            #expect(report.isComplete)
            let limited = try LeakScan(for: [marker]).search(url, depthLimit: 100)
            #expect(limited.leaks.isEmpty)
            #expect(!limited.isComplete)
            #expect(limited.skipped.map(\.reason) == ["a folder below 100 others"])
        }
        let system = SystemFileSystem()
        try system.removeTree("tree", in: system.openDirectory(path: path("")))
    }
}

/// Whether the file system of tests' files has holes in files.
enum Sparse {
    static let isTold: Bool = {
        let path = URL.temporaryDirectory.appending(path: "coffer-sparse-\(UUID())").path(percentEncoded: false)
        let file = open(path, O_CREAT | O_RDWR, 0o600)
        guard file >= 0 else { return false }
        defer { close(file) }
        unlink(path)
        var status = stat()
        return ftruncate(file, 8 << 40) == 0 && fstat(file, &status) == 0 && status.st_blocks < 100
    }()
}

/// Lets this process, which is a test's own, open no more than so many files and directories beside those that it has.
func limitDescriptors(toFurther count: Int) {
    var highest: Int32 = 2
    for descriptor: Int32 in 0..<4096 where fcntl(descriptor, F_GETFD) >= 0 { highest = descriptor }
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = rlim_t(highest + 1) + rlim_t(count)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
