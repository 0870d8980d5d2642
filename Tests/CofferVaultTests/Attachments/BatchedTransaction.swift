import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Synchronization
import Testing

/// A transaction that saves short contents from memory, in batches of eight: with a nested one that is rolled back after
/// its contents are in a batch, of which one is brought anew, one is used again as it is, and one stays away.
struct BatchedTransaction: Codable, SteppedChange, CustomStringConvertible {
    var isEncrypted = true
    var names = Names.sha1
    var ending = AttachmentTransaction.Ending.commit

    enum Names: String, Codable {
        case sha1, keyed
    }

    /// What a committed transaction has rows of, beside the one that was there before it.
    static let count = 9

    var description: String { "in batches, \(isEncrypted ? "encrypted" : "plain"), \(names), \(ending)" }

    private var transaction: AttachmentTransaction {
        AttachmentTransaction(isEncrypted: isEncrypted, count: Self.count)
    }
    private var key: SymmetricKey? { isEncrypted ? rawKey() : nil }

    func prepare(_ path: String) throws {
        let (store, _) = try LockedStore.create(
            path: path, key: key, attachmentNames: names == .keyed ? .keyed : .sha1,
            fileSystem: SystemFileSystem(), buildDatabase: buildStandIn)
        store.close()
        try transaction.saveFirst(path)
    }

    func run(_ path: String, _ fileSystem: any FileSystem) throws {
        let (store, attachments) = try openAttachments(at: path, key: key, fileSystem: fileSystem, batchCount: 8)
        defer { store.close() }
        let installation = Installation(attachments)
        func seal(_ seed: UInt64) throws -> StagedAttachment {
            try attachments.seal(AttachmentTransaction.bytes(seed: seed))
        }
        do {
            for seed in 2...6 { try installation.add(seal(UInt64(seed))) }
            let nested = try (7...9).map { try seal(UInt64($0)) }
            for file in nested { try installation.add(file) }
            installation.rollBack(to: 5)
            try installation.add(seal(7))
            try installation.add(nested[1])
            for seed in [10, 11] { try installation.add(seal(UInt64(seed))) }
        } catch {
            installation.didRollBack()
            throw error
        }
        let seeds: [UInt64] = [2, 3, 4, 5, 6, 7, 8, 10, 11]
        let rows =
            try AttachmentTransaction.rows(of: path)
            + zip(installation.files, seeds).map { try AttachmentTransaction.Row($0, attachments, seed: $1) }
        try installation.install()
        switch ending {
        case .commit:
            try AttachmentTransaction.write(rows, of: path)
            installation.didCommit()
        case .rollBack:
            // As a commit does that fails.
            installation.rollBack(to: 0)
            installation.didRollBack()
        }
    }

    /// As ``AttachmentTransaction/check(_:_:)``.
    func check(_ path: String, _ comment: Comment) throws -> Int { try transaction.check(path, comment) }
}

extension AttachmentStore {
    func seal(_ bytes: [UInt8]) throws(CofferError) -> StagedAttachment {
        try bytes.span.bytes.withUnsafeBytes { (bytes) throws(CofferError) in try seal(bytes) }
    }
}

@Suite("A transaction that saves contents in batches", .serialized)
struct BatchedTransactionTests {
    private static let commits = [
        BatchedTransaction(), BatchedTransaction(isEncrypted: false), BatchedTransaction(names: .keyed),
    ]
    private static let all =
        commits + [
            BatchedTransaction(ending: .rollBack), BatchedTransaction(isEncrypted: false, ending: .rollBack),
        ]

    @Test(
        "A transaction that saves contents in batches and is killed at any step leaves them all or none",
        arguments: [all[0], all[3]])
    func killed(transaction: BatchedTransaction) async throws {
        let steps = try transaction.steps()
        let beforeCommit = try #require(AttachmentTransaction.commit(in: steps))
        let saved = try await KilledChange.batches(transaction).killed(
            at: steps, after: [steps.count, beforeCommit]
        ) { scratch, fault, step in
            try transaction.check(scratch.store, "\(fault): \(step)")
        }
        let committed = AttachmentTransaction.expectAllOrNone(
            saved, count: BatchedTransaction.count, transaction.ending)
        print("\(transaction): killed \(saved.count) times at \(steps.count) steps, \(committed) had committed")
    }

    @Test(
        "A transaction in batches, of which a step fails, saves all or throws, saves none and leaves nothing",
        arguments: all)
    func failing(transaction: BatchedTransaction) throws {
        let steps = try transaction.steps()
        var errorCount = 0
        var failedSyncs = 0
        for number in 1...steps.count {
            let faults: [(Fault, CofferError.Code)] = [
                (.fail(number, EIO), .ioFailed), (.fail(number, ENOSPC), .noSpace),
                (.failAfter(number, EIO), .ioFailed), (.fullFrom(number), .noSpace), (.stopBefore(number), .ioFailed),
            ]
            for (fault, code) in faults {
                let comment: Comment = "\(fault): \(steps[number - 1])"
                let scratch = Scratch.inMemory
                try transaction.prepare(scratch.store)
                let recording = RecordingFileSystem(fault)
                let found = CofferVaultTests.code { try transaction.run(scratch.store, recording) }
                #expect(found == nil || found == code || found == .reopenRequired, comment)
                // Two threads are at work, and each time another step may be the one that fails.
                if recording.stepNames[number - 1] == "syncfs", code == .ioFailed {
                    #expect(found != nil, "\(fault): no sync may fail without the transaction")
                    failedSyncs += 1
                }
                if found != nil { errorCount += 1 }
                let left = try names(in: attachmentsPath(ofStoreAt: scratch.store)).count
                let saved = try transaction.check(scratch.store, comment)
                let isSaved = found == nil && transaction.ending == .commit
                #expect(saved == (isSaved ? BatchedTransaction.count : 0), comment)
                if case .stopBefore = fault { continue }
                if transaction.ending == .commit { #expect(left == saved + 1, comment) }
            }
        }
        #expect(errorCount > steps.count)
        #expect(failedSyncs > 0)
        print("\(transaction): each of \(steps.count) steps failed in five ways; \(errorCount) were errors")
    }

    @Test("A transaction in batches, beside which a sync fails, however late, saves none", arguments: commits)
    func failingBeside(transaction: BatchedTransaction) throws {
        let scratch = Scratch.inMemory
        try transaction.prepare(scratch.store)
        let syncs = Atomic(0)
        let recording = RecordingFileSystem(
            .failFirst("syncfs", EIO),
            afterStep: { _, name in
                if name == "syncfs", syncs.add(1, ordering: .relaxed).newValue == 1 { usleep(200_000) }
            })
        let found = code { try transaction.run(scratch.store, recording) }
        #expect(found == .ioFailed, "what the system said, for those who have to stop then")
        #expect(try transaction.check(scratch.store, "failed beside it") == 0)
    }

    @Test(
        "A transaction in batches that loses power leaves each with a row and its whole content or with neither",
        arguments: all)
    func powerCut(transaction: BatchedTransaction) throws {
        for reports in [true, false] {
            let scratch = Scratch.inMemory
            try transaction.prepare(scratch.store)
            let recording = RecordingFileSystem(reportsFailedWrites: reports)
            try transaction.run(scratch.store, recording)
            let rows = try AttachmentTransaction.rows(of: scratch.store).dropFirst().map(\.name)
            let log = recording.log
            let sync = log.lastIndex { if case .synchronizeDirectory = $0 { true } else { false } }
            let outcomes = try PowerCutCheck(
                log: log, commit: rows.isEmpty ? nil : #require(sync) + 1, rows: Set(rows), sampleCount: 100
            ).run("\(transaction)")
            #expect(outcomes > log.count)
            print("\(transaction): \(outcomes) outcomes of a power cut at \(log.count + 1) moments")
        }
    }

    @Test("A transaction in batches that fails at a step, and loses power, leaves nothing of it")
    func powerCutAfterFailure() throws {
        let transaction = BatchedTransaction(ending: .rollBack)
        for number in 1...(try transaction.steps().count) {
            for fault in [Fault.fail(number, EIO), .failAfter(number, EIO), .fullFrom(number)] {
                let scratch = Scratch.inMemory
                try transaction.prepare(scratch.store)
                let recording = RecordingFileSystem(fault)
                _ = code { try transaction.run(scratch.store, recording) }
                _ = try PowerCutCheck(log: recording.log, commit: nil, rows: [], sampleCount: 10).run("\(fault)")
            }
        }
    }
}
