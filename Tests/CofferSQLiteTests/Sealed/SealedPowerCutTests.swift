import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import CofferSQLite

/// What a disk has after the power was cut: what was synced, and of what was not, any part of any write.
private struct Disk {
    private var file: [UInt8]
    private var log: [UInt8]?
    private var pending: [FaultyFiles.Operation] = []

    init(_ image: SealedFixture.Image) { (file, log) = (image.file, image.log) }

    mutating func take(_ operation: FaultyFiles.Operation) {
        guard operation.kind == .sync else { return pending.append(operation) }
        for done in pending where done.isLog == operation.isLog { apply(done, done.bytes.count) }
        pending.removeAll { $0.isLog == operation.isLog }
    }

    /// Writes that no sync followed arrive, or don't, or with some of their sectors of 512 bytes alone; a length may be changed
    /// or not.
    mutating func cut(_ random: inout SeededNumbers) -> SealedFixture.Image {
        for operation in pending {
            switch operation.kind {
            case .sync: break
            case .delete, .truncate: if random.isOne(in: 2) { apply(operation, 0) }
            case .write:
                switch random.below(3) {
                case 0: break
                case 1: apply(operation, operation.bytes.count)
                default:
                    var start = 0
                    while start < operation.bytes.count {
                        // Up to the next border of a sector of the file.
                        let end = min(operation.bytes.count, start + 512 - (operation.offset + start) % 512)
                        if random.isOne(in: 2) {
                            write(operation.bytes[start..<end], operation.offset + start, operation.isLog)
                        }
                        start = end
                    }
                }
            }
        }
        return SealedFixture.Image(file: file, log: log)
    }

    private mutating func apply(_ operation: FaultyFiles.Operation, _ count: Int) {
        switch operation.kind {
        case .sync: break
        case .delete: log = nil
        case .truncate:
            var bytes = operation.isLog ? log ?? [] : file
            bytes =
                Array(bytes.prefix(operation.offset))
                + [UInt8](repeating: 0, count: max(0, operation.offset - bytes.count))
            if operation.isLog { log = bytes } else { file = bytes }
        case .write: write(operation.bytes[..<count], operation.offset, operation.isLog)
        }
    }

    private mutating func write(_ part: ArraySlice<UInt8>, _ offset: Int, _ isLog: Bool) {
        var bytes = isLog ? log ?? [] : file
        if bytes.count < offset + part.count {
            bytes += [UInt8](repeating: 0, count: offset + part.count - bytes.count)
        }
        bytes.replaceSubrange(offset..<offset + part.count, with: part)
        if isLog { log = bytes } else { file = bytes }
    }
}

extension SealedFaultTests {
    /// The operations of some work, and what it acknowledged when.
    private func recorded(
        _ start: SealedFixture, _ image: SealedFixture.Image, keepingLength: Bool, syncsCommits: Bool = true
    ) throws -> Recording {
        let vfs = try FaultyFiles.vfs()
        defer { FaultyFiles.reset() }
        let fixture = try start.restored(image, name: "recorded.sqlite3", cacheByteCount: 100_000, beneath: vfs)
        FaultyFiles.record()
        let connection = try Connection(
            path: fixture.path, subject: "test", access: .readWrite, protection: .sealed(fixture.pages),
            cacheByteCount: 1 << 20)
        var work = Work(before: [])
        try work.run(connection, keepingLength: keepingLength, syncsCommits: syncsCommits)
        try connection.close()
        return Recording(start: start, image: image, operations: FaultyFiles.operations(), work: work)
    }

    /// What was written and when, and what was acknowledged.
    struct Recording {
        let start: SealedFixture
        let image: SealedFixture.Image
        let operations: [FaultyFiles.Operation]
        let work: Work
    }

    /// The cuts that lost what had been acknowledged, or made something that never was.
    ///
    /// - Parameters:
    ///   - isLying: which syncs do nothing.
    ///   - lossLimit: how many of the transactions that were acknowledged last may be missing.
    private func losses(
        _ recording: Recording, seed: UInt64, lossLimit: Int = 0,
        lyingAbout isLying: (FaultyFiles.Operation) -> Bool = { _ in false }
    ) throws -> [String] {
        var losses: [String] = []
        var disk = Disk(recording.image)
        for (index, operation) in recording.operations.enumerated() {
            if !(operation.kind == .sync && isLying(operation)) { disk.take(operation) }
            let acknowledged = recording.work.operationCounts.count { $0 <= index + 1 }
            var random = SeededNumbers(seed: seed, index)
            for attempt in 0..<2 {
                var cut = disk
                let found = try Reopened(recording.start.restored(cut.cut(&random), name: "cut.sqlite3"))
                let possible = recording.work.states[max(0, acknowledged - lossLimit)...]
                    .prefix(2 + min(acknowledged, lossLimit)).map(Reopened.rows)
                if !possible.contains(found) { losses.append("operation \(index + 1), attempt \(attempt)") }
            }
        }
        return losses
    }

    @Test(
        "Power that is cut after any write leaves what was acknowledged, and whole transactions",
        arguments: [false, true], [1, 2, 3] as [UInt64])
    func powerCut(keepingLength: Bool, seed: UInt64) throws {
        let start = try SealedFixture()
        let recording = try recorded(start, start.image(), keepingLength: keepingLength)
        #expect(recording.operations.count > 100 && recording.work.acknowledged == 6)
        #expect(try losses(recording, seed: seed) == [])
    }

    @Test(
        "Where commits aren't synced, a power cut may lose the last ones, and is never taken for damage",
        arguments: [false, true])
    func unsyncedCommits(keepingLength: Bool) throws {
        let start = try SealedFixture()
        let recording = try recorded(start, start.image(), keepingLength: keepingLength, syncsCommits: false)
        for seed in 1...3 as ClosedRange<UInt64> {
            // Checkpoints come after three transactions at most.
            #expect(try losses(recording, seed: seed, lossLimit: 3) == [])
        }
        #expect(try losses(recording, seed: 1) != [])
    }

    /// The test of the test.
    @Test(
        "A disk whose syncs do nothing, for the log or for the file, loses what was acknowledged",
        arguments: [false, true])
    func uselessSyncs(isLog: Bool) throws {
        let start = try SealedFixture()
        let recording = try recorded(start, start.image(), keepingLength: true)
        #expect(try losses(recording, seed: 1) { $0.isLog == isLog }.count > 3)
    }
}
