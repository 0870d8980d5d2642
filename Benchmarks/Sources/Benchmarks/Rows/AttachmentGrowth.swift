internal import CByHand
internal import Coffer
internal import Foundation

/// What a byte costs in an attachment of a kilobyte and in one of a gigabyte, and one byte out of each.
struct AttachmentGrowth {
    private let bench: Bench
    /// How long attachments are, and how many of them are written in one transaction.
    private let sizes: [(byteCount: Int, count: Int)]

    init(_ bench: Bench) {
        self.bench = bench
        sizes =
            bench.settings.isQuick
            ? [(1_000, 50), (1_000_000, 10), (32_000_000, 1)]
            : [(1_000, 500), (32_000, 500), (1_000_000, 100), (32_000_000, 10), (1_000_000_000, 1)]
    }

    private static let roundCount = 3

    func findings() throws -> Findings {
        let database = try bench.newStore()
        var writing: [Series.Point] = []
        var reading: [Series.Point] = []
        var ranges: [Series.Point] = []
        for (byteCount, count) in sizes {
            bench.say("attachments of \(byteCount) bytes …")
            // Each content is another one: the same content would be stored once.
            let rounds = (0..<Self.roundCount).map { round in
                (0..<count).map { UInt64(byteCount) << 20 + UInt64(round * count + $0) }
            }
            let perByte = 1e9 / Double(byteCount * count)
            try bench.settle()
            writing.append(
                Series.Point(
                    at: byteCount,
                    try rounds.map { seeds in
                        try measure { try write(seeds, byteCount, to: database) }.time.seconds * perByte
                    }))
            reading.append(
                Series.Point(
                    at: byteCount,
                    try rounds.map { seeds in
                        try measure { try read(seeds, byteCount, from: database) }.time.seconds * perByte
                    }))
            ranges.append(
                Series.Point(at: byteCount, try rounds.map { try readOneByte($0[0], byteCount, of: database) }))
        }
        try database.delete()
        let from = 1_000_000
        return Findings(series: [
            Series(
                "write a byte", .bytes, unit: "ns", points: writing, growthFrom: from, target: .atMost(1.5),
                explanation: """
                    by the clock, from a stream that makes its content, durable: up to 500 attachments, a document for each, in \
                    one transaction; growth from 1 MB on
                    """),
            Series(
                "read a byte", .bytes, unit: "ns", points: reading, growthFrom: from, target: .atMost(1.5),
                explanation: "by the clock, all of it in chunks, from the page cache; growth from 1 MB on"),
            Series(
                "read one byte of it", .bytes, unit: "µs", points: ranges, growthFrom: from, target: .atMost(1.5),
                explanation: "`content(in:)` of one byte at a random place, by the clock; growth from 1 MB on"),
        ])
    }

    private func write(_ seeds: [UInt64], _ byteCount: Int, to database: Database) throws {
        try database.inTransaction {
            for seed in seeds {
                let draft = try database.document(withID: "\(seed)").newRevision()
                let stream = GeneratedStream(seed: seed, byteCount: byteCount)
                try draft.setAttachment(named: "content", contentType: nil, contentsOf: stream)
                try draft.save()
            }
        }
    }

    private func read(_ seeds: [UInt64], _ byteCount: Int, from database: Database) throws {
        for seed in seeds {
            var count = 0
            try attachment(seed, of: database).chunks?.forEach { count += $0.count }
            try expect(count == byteCount, "\(count) of \(byteCount) bytes were read")
        }
    }

    /// In microseconds, the median.
    private func readOneByte(_ seed: UInt64, _ byteCount: Int, of database: Database) throws -> Double {
        let attachment = try attachment(seed, of: database)
        return try (0..<bench.size(100, quick: 30)).map { _ in
            let offset = Int.random(in: 0..<byteCount / 8) * 8
            var part: Data?
            let cost = try measure { part = try attachment.content(in: offset..<offset + 1) }
            let matches = unsafe part?.withUnsafeBytes { bytes in
                unsafe bytes.count == 1 && content_matches(seed, UInt64(offset), bytes.baseAddress, 1)
            }
            try expect(matches == true, "another byte at \(offset)")
            return cost.time.seconds * 1e6
        }.median
    }

    private func attachment(_ seed: UInt64, of database: Database) throws -> Attachment {
        guard let found = try database["\(seed)"]?.currentRevision?.attachment(named: "content") else {
            throw Failure("attachment \(seed) isn't there")
        }
        return found
    }
}
