import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import Coffer

/// One bit after the other, flipped on the disk while the right key is given: what is read is what was written, or it is
/// *damaged*. Never other data, never a crash, never a 401.
///
/// One bit by a seed, of each byte of a content and of every eighth of the database, where a flip costs milliseconds; with
/// `COFFER_EXHAUSTIVE=1` all eight of every byte, which takes hours.
@Suite("Every bit of a store", .serialized)
struct EveryBitTests {
    static let isExhaustive = ProcessInfo.processInfo.environment["COFFER_EXHAUSTIVE"] == "1"

    /// What an outcome is called that is neither right nor damage.
    private static let wrong = "wrong"

    /// Calls `body` for the bits of `byteCount` bytes on all cores, with a number for the thread, and counts its answers.
    ///
    /// - Returns: how often each answer came.
    private func sweep(
        _ byteCount: Int, step: Int = 1, threads: Int,
        _ body: @escaping @Sendable (_ thread: Int, _ offset: Int, UInt8) throws -> String
    ) throws -> [String: Int] {
        let tally = Tally()
        try onThreads(threads) { thread in
            for offset in stride(from: thread * step, to: byteCount, by: threads * step) {
                var random = SeededNumbers(seed: UInt64(offset))
                for bit in Self.isExhaustive ? Array(0..<8) : [UInt8(random.next() % 8)] {
                    let outcome = try body(thread, offset, 1 << bit)
                    if outcome == Self.wrong { Issue.record("bit \(bit) of byte \(offset)") }
                    tally.count(outcome)
                }
            }
        }
        return tally.all
    }

    private static let threads = ProcessInfo.processInfo.activeProcessorCount

    private func report(_ what: String, _ byteCount: Int, _ outcomes: [String: Int]) {
        let flips = outcomes.values.reduce(0, +)
        let counts = outcomes.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
        print("every bit: \(what), \(byteCount) bytes, \(flips) flips: \(counts)")
    }

    @Test("Every bit of a database, flipped, leaves what is read right, or is damage", .timeLimit(.minutes(120)))
    func database() throws {
        let original = try SmallStore()
        let count = try Data(contentsOf: original.databaseFile).count
        let copies = try (0..<Self.threads).map { _ in try original.copy() }
        let outcomes = try sweep(count, step: Self.isExhaustive ? 1 : 8, threads: Self.threads) {
            thread, offset, mask in
            let copy = copies[thread]
            try copy.databaseFile.flip(mask, at: offset)
            // Opened for writing, it is written to; so that is the rarer case, and ends with a new copy.
            let outcome = copy.outcome(readOnly: offset % 61 != 0)
            if offset % 61 == 0 {
                try copy.restore(from: original)
            } else {
                try copy.databaseFile.flip(mask, at: offset)
            }
            return outcome
        }
        report("the database", count, outcomes)
        // What may go unnoticed: the random padding at the end of each page, 12 bytes of 4096, and pages that nothing uses.
        #expect(outcomes["damaged", default: 0] * 10 > outcomes["right", default: 0] * 9)
        for copy in copies { #expect(copy.outcome(readOnly: true) == "right") }
    }

    @Test("Every bit of a content in three chunks, flipped, is damage, and the other chunks can be read")
    func content() throws {
        let original = try SmallStore()
        let count = try Data(contentsOf: original.contentFile()).count
        #expect(count == 56 + 2 * 16_400 + 116)
        let copies = try (0..<Self.threads).map { _ in try original.copy() }
        let open = try copies.map { try $0.open(readOnly: true) }
        let attachments = try open.map { try #require(try $0["photo"]?.currentRevision?.attachment(named: "photo")) }
        let files = try copies.map { try $0.contentFile() }
        let outcomes = try sweep(count, threads: Self.threads) { thread, offset, mask in
            try files[thread].flip(mask, at: offset)
            defer { try? files[thread].flip(mask, at: offset) }
            guard thrown({ try attachments[thread].content })?.code == .damaged else { return Self.wrong }
            let damaged = (offset - 56) / 16_400
            for chunk in 0..<3 {
                let range = chunk * 16_384..<min((chunk + 1) * 16_384, SmallStore.photo.count)
                // The header and the last chunk are checked by every reading.
                if offset < 56 || damaged == 2 || damaged == chunk {
                    guard thrown({ try attachments[thread].content(in: range) })?.code == .damaged else {
                        return Self.wrong
                    }
                } else if try attachments[thread].content(in: range) != SmallStore.photo.subdata(in: range) {
                    return Self.wrong
                }
            }
            return "damaged"
        }
        report("a content", count, outcomes)
        #expect(outcomes == ["damaged": count * (Self.isExhaustive ? 8 : 1)])
        for attachment in attachments { #expect(try attachment.content == SmallStore.photo) }
    }

    @Test("A database that is cut at or beside any page's end is damage, or what is read is right")
    func databaseLength() throws {
        let store = try SmallStore()
        let whole = try Data(contentsOf: store.databaseFile)
        var outcomes: [String: Int] = [:]
        for length in Self.lengths(ends: Array(stride(from: 0, through: whole.count, by: 4096)), of: whole.count) {
            try whole.prefix(length).write(to: store.databaseFile)
            let outcome = store.outcome(readOnly: true)
            // Half of a last page that nothing uses may be missing; none that says how many there are.
            #expect(outcome != Self.wrong && (length >= 8192 || outcome == "damaged"), "\(length) bytes")
            outcomes[outcome, default: 0] += 1
        }
        report("cuts of the database", whole.count, outcomes)
    }

    @Test("A content's file that is cut at or beside any chunk's or tag's end is damage for every reading")
    func contentLength() throws {
        let store = try SmallStore()
        let database = try store.open(readOnly: true)
        let attachment = try #require(try database["photo"]?.currentRevision?.attachment(named: "photo"))
        let file = try store.contentFile()
        let whole = try Data(contentsOf: file)
        var ends = [0, 24, 56, whole.count - 16]
        for chunk in 1...2 { ends += [56 + chunk * 16_400 - 16, 56 + chunk * 16_400] }
        for length in Self.lengths(ends: ends, of: whole.count) {
            try whole.prefix(length).write(to: file)
            #expect(thrown { try attachment.content }?.code == .damaged, "\(length) bytes")
            #expect(thrown { try attachment.content(in: 0..<1) }?.code == .damaged, "\(length) bytes")
        }
        try (whole + [0]).write(to: file)
        #expect(thrown { try attachment.content }?.code == .damaged)
        try whole.write(to: file)
        #expect(try attachment.content == SmallStore.photo)
    }

    private static func lengths(ends: [Int], of byteCount: Int) -> [Int] {
        Set(ends.flatMap { [$0 - 1, $0, $0 + 1] } + [byteCount - 1]).filter { 0..<byteCount ~= $0 }.sorted()
    }
}

extension URL {
    /// Changes bits of one byte of the file, in place.
    func flip(_ mask: UInt8, at offset: Int) throws {
        let handle = try FileHandle(forUpdating: self)
        defer { try? handle.close() }
        try handle.seek(toOffset: UInt64(offset))
        let byte = try #require(try handle.read(upToCount: 1)?.first)
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: [byte ^ mask])
    }
}
