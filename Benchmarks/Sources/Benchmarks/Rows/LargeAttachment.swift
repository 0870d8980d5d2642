internal import CByHand
internal import Coffer
internal import Foundation

/// One attachment that is too large to be in memory: what it costs to stream it in and out, and to read a little of it.
struct LargeAttachment {
    private let bench: Bench
    /// Just short of some MiB, so that the last chunk, which every opening reads, is as long as can be.
    private let byteCount: Int

    init(_ bench: Bench) {
        self.bench = bench
        byteCount = (bench.size(1024, quick: 128) << 20) - 8
    }

    private var size: String { byteCount > 1 << 29 ? "1 GiB" : "\((byteCount + 8) >> 20) MiB" }

    private static let seed: UInt64 = 1 << 40
    private static let documentID = "large"

    func findings() throws -> Findings {
        let name = bench.newName("large")
        func peak(_ work: Child) throws -> Int {
            try work.peakMemory(store: name, in: bench.directory, byteCount: byteCount)
        }
        bench.say("streaming \(size) in …")
        let streamedIn = try peak(.streamIn)
        let base = try peak(.open)
        bench.say("streaming \(size) out …")
        let peaks = [
            ("stream in", streamedIn), ("stream out", try peak(.streamOut)), ("read ranges", try peak(.readRanges)),
        ]
        let memory = peaks.map { what, peak in
            Row(
                "memory, \(what), \(size)", [Double(peak - base) / 1_048_576], .mebibytes, .atMost(32),
                explanation: """
                    peak resident set of a process that does only this (\(peak >> 20) MiB), less that of one that opens the \
                    store and saves a document with a short attachment (\(base >> 20) MiB). One run; every byte is compared
                    """)
        }
        return Findings(rows: memory + (try oneByte(of: name)))
    }

    // MARK: In a child process

    static func streamIn(to database: Database, _ byteCount: Int) throws {
        let draft = try database.document(withID: documentID).newRevision()
        let stream = GeneratedStream(seed: seed, byteCount: byteCount)
        try draft.setAttachment(named: "content", contentType: nil, contentsOf: stream)
        try draft.save()
    }

    static func streamOut(of database: Database, _ byteCount: Int) throws {
        var count = 0
        try attachment(in: database, byteCount).chunks?.forEach { chunk in
            try compare(chunk, at: count)
            count += chunk.count
        }
        try expect(count == byteCount, "\(count) bytes streamed out")
    }

    static func readRanges(of database: Database, _ byteCount: Int) throws {
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
                "one byte of \(size), bytes read", bytesRead, .bytes, .atMost(2 * 16_400 + 56),
                explanation: """
                    by the whole process (rchar), of \(bytesRead.count) reads at random places, each opening the \
                    attachment anew: its header, its last chunk, which says that it is whole, and the chunk of the byte
                    """),
            Row(
                "one byte of \(size), time", microseconds, .microseconds, .atMost(1_000),
                explanation: "of the same reads, from the page cache; the target only says that size does not matter"
            ),
        ]
    }
}
