internal import CByHand
internal import Coffer
internal import Foundation

/// One attachment that is too large to be in memory: what it costs to stream it in and out, and to read a little of it.
struct LargeAttachment {
    let bench: Bench
    let byteCount: Int

    /// Just short of `mebibyteCount` MiB, so that the last chunk, which every opening reads, is as long as can be.
    init(_ bench: Bench, mebibyteCount: Int) {
        self.bench = bench
        byteCount = (mebibyteCount << 20) - 8
    }

    private var size: String { byteCount > 1 << 29 ? "1 GiB" : "\((byteCount + 8) >> 20) MiB" }

    static let seed: UInt64 = 1 << 40
    static let documentID = "large"

    /// What a child process does with the store, each alone, so that its memory says what that costs.
    enum Work: String, CaseIterable {
        /// Opens the store and saves a document with a short attachment.
        case open = "--child-open"
        case streamIn = "--child-stream-in"
        case streamOut = "--child-stream-out"
        case readRanges = "--child-read-ranges"
    }

    func rows(memory: Bool, oneByte: Bool) throws -> [Row] {
        let name = bench.newName("large")
        var rows: [Row] = []
        let limit = 32.0
        let streamedIn = try run(.streamIn, on: name)
        if memory {
            let base = try run(.open, on: name)
            let peaks = [
                ("stream in", streamedIn), ("stream out", try run(.streamOut, on: name)),
                ("read ranges", try run(.readRanges, on: name)),
            ]
            rows = peaks.map { what, peak in
                let more = Double(peak - base) / 1_048_576
                return Row(
                    "memory, \(what), \(size)", value: more, unit: "MiB", spread: [more, more],
                    target: .atMost(limit),
                    explanation: """
                        peak resident set of a process that does only this (\(peak >> 20) MiB), less that of one that \
                        opens the store and saves a document with a short attachment (\(base >> 20) MiB). One run; every \
                        byte is compared
                        """)
            }
        }
        if oneByte { rows += try self.oneByte(of: name) }
        return rows
    }

    // MARK: Memory

    /// The greatest resident set of a new process that does `work`.
    private func run(_ work: Work, on name: String) throws -> Int {
        let process = Process()
        process.executableURL = Bundle.main.executableURL
        process.arguments = [work.rawValue, bench.directory.path, name, "\(byteCount)"]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        let text = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard process.terminationStatus == 0, let peak = Int(text) else { throw Failure("\(work.rawValue) failed") }
        return peak
    }

    /// The child's side: does the work that `arguments` name and prints the peak. False when they name none.
    static func runAsChild(_ arguments: [String]) throws -> Bool {
        guard arguments.count == 4, let work = Work(rawValue: arguments[0]), let byteCount = Int(arguments[3]) else {
            return false
        }
        let database = try Bench.openStore(named: arguments[2], in: URL(filePath: arguments[1]))
        switch work {
        case .open:
            let draft = try database.createDocument().newRevision()
            draft.setAttachment(named: "short", contentType: nil, content: Data("short".utf8))
            try draft.save()
        case .streamIn:
            let draft = try database.document(withID: documentID).newRevision()
            let stream = GeneratedStream(seed: seed, byteCount: byteCount)
            try draft.setAttachment(named: "content", contentType: nil, contentsOf: stream)
            try draft.save()
        case .streamOut:
            var count = 0
            try attachment(in: database, byteCount).chunks?.forEach { chunk in
                try compare(chunk, at: count)
                count += chunk.count
            }
            try expect(count == byteCount, "\(count) bytes streamed out")
        case .readRanges:
            let attachment = try attachment(in: database, byteCount)
            let step = 1 << 20
            let count = (byteCount + step - 1) / step
            for index in 0..<count {
                // All of it, but not in order: 61 has no divisor in common with a power of two.
                let start = index * 61 % count * step
                let range = start..<min(start + step, byteCount)
                guard let part = try attachment.content(in: range) else { throw Failure("no content") }
                try expect(part.count == range.count, "\(part.count) bytes read")
                try compare(part, at: start)
            }
        }
        try database.close()
        print(try OwnProcess.peakMemory())
        return true
    }

    private static func attachment(in database: Database, _ byteCount: Int) throws -> Attachment {
        guard let attachment = try database[documentID]?.currentRevision?.attachment(named: "content") else {
            throw Failure("there is no large attachment")
        }
        try expect(attachment.length == byteCount, "the large attachment has \(attachment.length) bytes")
        return attachment
    }

    private static func compare(_ part: Data, at offset: Int) throws {
        let matches = unsafe part.withUnsafeBytes { bytes in
            unsafe content_matches(seed, UInt64(offset), bytes.baseAddress, bytes.count)
        }
        try expect(matches, "the bytes from \(offset) on are others")
    }

    // MARK: One byte

    private func oneByte(of name: String) throws -> [Row] {
        let database = try Bench.openStore(named: name, in: bench.directory)
        let attachment = try Self.attachment(in: database, byteCount)
        var random = SystemRandomNumberGenerator()
        var bytesRead: [Double] = []
        var microseconds: [Double] = []
        let ownCost = try -OwnProcess.bytesRead() + OwnProcess.bytesRead()
        for _ in 0..<bench.size(500, quick: 100) {
            let offset = Int.random(in: 0..<byteCount / 8, using: &random) * 8
            var part: Data?
            let before = try OwnProcess.bytesRead()
            let cost = try measure { part = try attachment.content(in: offset..<offset + 1) }
            bytesRead.append(Double(try OwnProcess.bytesRead() - before - ownCost))
            microseconds.append(cost.time.seconds * 1e6)
            guard let part, part.count == 1 else { throw Failure("no byte at \(offset)") }
            try Self.compare(part, at: offset)
        }
        try database.delete()
        return [
            Row(
                "one byte of \(size), bytes read", value: bytesRead.median, unit: "B",
                spread: [bytesRead.min() ?? 0, bytesRead.max() ?? 0], target: .atMost(2 * 16_400 + 56),
                explanation: """
                    by the whole process (rchar), of \(bytesRead.count) reads at random places, each opening the \
                    attachment anew: its header, its last chunk, which says that it is whole, and the chunk of the byte
                    """),
            Row(
                "one byte of \(size), time", value: microseconds.median, unit: "µs",
                spread: [microseconds.min() ?? 0, microseconds.max() ?? 0], target: .atMost(1_000),
                explanation: "of the same reads, from the page cache; the target only says that it is no matter of size"
            ),
        ]
    }
}

/// A stream that makes its bytes when they are read.
private final class GeneratedStream: InputStream {
    private let seed: UInt64
    private let byteCount: Int
    private var offset = 0
    private var status = Stream.Status.notOpen

    init(seed: UInt64, byteCount: Int) {
        self.seed = seed
        self.byteCount = byteCount
        super.init(data: Data())
    }

    override var streamStatus: Stream.Status { status }
    override var streamError: (any Error)? { nil }
    override var hasBytesAvailable: Bool { offset < byteCount }
    override func open() { status = .open }
    override func close() { status = .closed }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        // A multiple of 8, as long as it isn't the last.
        let count = byteCount - offset <= maxLength ? byteCount - offset : maxLength & ~7
        unsafe content_fill(seed, UInt64(offset), buffer, count)
        offset += count
        return count
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool { false }
}
