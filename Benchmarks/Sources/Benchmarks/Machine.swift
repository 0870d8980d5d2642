internal import CByHand
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Where a run was made.
struct Machine: Encodable {
    let processor: String
    let processorCount: Int
    /// Of one minute. Above 0 something else ran; near the number of processors or more, figures are noise.
    let loadAtStart: Double
    let openSSL: String
    let fileSystem: String
    let isOptimized: Bool
    /// In microseconds, of 4 KiB appended to a file in the directory of the run.
    let fsyncMicroseconds: Double
    let fsyncMicrosecondsSpread: [Double]
    /// In microseconds, of an empty file in a new directory there.
    let fileCreationMicroseconds: Double

    init(measuringIn directory: URL) throws {
        let processors = Self.lines(of: "/proc/cpuinfo").filter { $0.hasPrefix("model name") }
        processor = processors.first?.split(separator: ":").last.map { $0.trimmingCharacters(in: .whitespaces) } ?? "?"
        processorCount = ProcessInfo.processInfo.activeProcessorCount
        loadAtStart = Self.lines(of: "/proc/loadavg").first?.split(separator: " ").first.flatMap { Double($0) } ?? 0
        openSSL = unsafe String(cString: by_hand_openssl_version())
        fileSystem = Self.fileSystem(of: directory)
        #if DEBUG
        isOptimized = false
        #else
        isOptimized = true
        #endif
        let latencies = try Self.fsyncLatencies(in: directory)
        fsyncMicroseconds = latencies.median
        fsyncMicrosecondsSpread = [latencies.min() ?? 0, latencies.max() ?? 0]
        fileCreationMicroseconds = try Self.creationLatencies(in: directory.appending(path: "created")).median
    }

    /// From here on an fsync costs enough for rows that save them.
    var isFsyncReal: Bool { fsyncMicroseconds >= 100 }

    var lines: [String] {
        let (least, greatest) = (fsyncMicrosecondsSpread[0], fsyncMicrosecondsSpread[1])
        var lines = [
            "\(processor), \(processorCount) processors, load \(loadAtStart) at the start; \(openSSL); \(fileSystem)",
            String(format: "fsync of 4 KiB: %.0f µs (%.0f … %.0f)", fsyncMicroseconds, least, greatest)
                + String(format: "; creating a file: %.0f µs", fileCreationMicroseconds),
        ]
        if loadAtStart > 0.5 * Double(processorCount) {
            lines.append("WARNING: this machine is busy with something else; times are noisy, ratios less so")
        }
        if fileCreationMicroseconds > 40 {
            lines.append("WARNING: files were removed here minutes ago; rows that write many files are slower by that")
        }
        if fileSystem.hasSuffix("tmpfs") { lines.append("WARNING: in memory: nothing is made durable here") }
        if !isOptimized { lines.append("WARNING: a debug build: no figure means anything") }
        return lines
    }

    private static func fsyncLatencies(in directory: URL) throws -> [Double] {
        let file = unsafe open(directory.appending(path: "fsync").path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        try expect(file >= 0, "can't write in \(directory.path)")
        defer { close(file) }
        let page = [UInt8](repeating: 1, count: 4096)
        return try (0..<50).map { _ in
            try expect(unsafe write(file, page, page.count) == page.count, "can't write in \(directory.path)")
            var result: Int32 = 0
            let cost = measure { result = fsync(file) }
            try expect(result == 0, "fsync failed")
            return cost.time.seconds * 1e6
        }
    }

    private static func creationLatencies(in directory: URL) throws -> [Double] {
        let folder = try Folder(directory)
        return try (0..<200).map { number in
            var file: Int32 = -1
            let cost = measure {
                file = unsafe openat(folder.descriptor, "\(number)", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            }
            try expect(file >= 0, "can't write in \(directory.path)")
            close(file)
            return cost.time.seconds * 1e6
        }
    }

    /// The type of the mount whose path is the longest one that `directory` begins with.
    private static func fileSystem(of directory: URL) -> String {
        let path = directory.resolvingSymlinksInPath().path
        let mounts = lines(of: "/proc/self/mounts").map { $0.split(separator: " ") }.filter { $0.count > 2 }
        let own = mounts.filter { path == $0[1] || path.hasPrefix($0[1] == "/" ? "/" : $0[1] + "/") }
        return own.max { $0[1].count < $1[1].count }.map { String($0[2]) } ?? "?"
    }

    private static func lines(of path: String) -> [Substring] {
        // Not of any length that is known before: read to its end.
        let data = try? FileHandle(forReadingFrom: URL(filePath: path)).readToEnd()
        return String(decoding: data ?? Data(), as: UTF8.self).split(separator: "\n")
    }
}

/// What the kernel says of this process.
enum OwnProcess {
    /// The greatest resident set so far, in bytes (Linux).
    static func peakMemory() throws -> Int { try number(after: "VmHWM:", in: "/proc/self/status") * 1024 }

    /// How many bytes it has read by system calls so far, wherever they came from (Linux).
    static func bytesRead() throws -> Int { try number(after: "rchar:", in: "/proc/self/io") }

    private static func number(after name: String, in path: String) throws -> Int {
        let data = try FileHandle(forReadingFrom: URL(filePath: path)).readToEnd() ?? Data()
        for line in String(decoding: data, as: UTF8.self).split(separator: "\n") where line.hasPrefix(name) {
            let words = line.dropFirst(name.count).split { $0 == " " || $0 == "\t" }
            if let number = words.first.flatMap({ Int($0) }) { return number }
        }
        throw Failure("\(path) says nothing of \(name)")
    }
}
