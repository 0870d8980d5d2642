import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

/// A real process is killed at each step between the first byte of an attachment and the end of its transaction.
@Suite("A process killed while it saves attachments", .serialized)
struct AttachmentCrashTests {
    @Test(
        "A process killed while it saves attachments leaves them all or none, each with row and file or with neither",
        arguments: [
            AttachmentTransaction(), AttachmentTransaction(isEncrypted: false), AttachmentTransaction(count: 2),
            AttachmentTransaction(ending: .rollBack), AttachmentTransaction(count: 8),
            AttachmentTransaction(count: 8, ending: .rollBack),
        ])
    func killed(transaction: AttachmentTransaction) async throws {
        let steps = try transaction.steps()
        // The commit, which is none of the steps, comes after the last sync of attachments/.
        let beforeCommit = try #require(AttachmentTransaction.commit(in: steps))
        let saved = try await KilledChange.attachments(transaction).killed(
            at: steps, after: [steps.count, beforeCommit]
        ) { scratch, fault, step in
            try transaction.check(scratch.store, "\(fault): \(step)")
        }
        let committed = AttachmentTransaction.expectAllOrNone(saved, count: transaction.count, transaction.ending)
        print("\(transaction): killed \(saved.count) times at \(steps.count) steps, \(committed) had committed")
    }
}

/// The same without a process for each point, so that more of them can be tried.
@Suite("A step of saving attachments that fails")
struct AttachmentFaultTests {
    private static let transactions = [
        AttachmentTransaction(), AttachmentTransaction(count: 2), AttachmentTransaction(isEncrypted: false),
        // Enough for a list, and one sync of all of them.
        AttachmentTransaction(count: 8),
    ]

    /// Runs `transaction` with `fault`, opens the store again and returns the error, and how many were saved.
    private func outcome(
        of transaction: AttachmentTransaction, _ fault: Fault, _ comment: Comment
    ) throws -> (code: CofferError.Code?, saved: Int) {
        let scratch = Scratch.inMemory
        try transaction.prepare(scratch.store)
        let code = code { try transaction.run(scratch.store, RecordingFileSystem(fault)) }
        let left = try names(in: attachmentsPath(ofStoreAt: scratch.store)).count
        let saved = try transaction.check(scratch.store, comment)
        // Before the next open, too, nothing is installed but what has a row; unless nothing could be taken back either.
        if case .stopBefore = fault {} else { #expect(left == saved + 1, comment) }
        return (code, saved)
    }

    @Test("A step of saving attachments that fails saves none of them, and leaves nothing", arguments: transactions)
    func failing(transaction: AttachmentTransaction) throws {
        let steps = try transaction.steps()
        let commit = try #require(AttachmentTransaction.commit(in: steps))
        for (index, step) in steps.enumerated() {
            for (number, code) in [(EIO, CofferError.Code.ioFailed), (ENOSPC, .noSpace)] {
                let result = try outcome(of: transaction, .fail(index + 1, number), "\(step)")
                // After the commit, only tidying is left, and what fails of it is made up for by the next open.
                #expect(result.code == (index < commit ? code : nil), "\(step)")
                #expect(result.saved == (index < commit ? 0 : transaction.count), "\(step)")
            }
        }
    }

    @Test(
        "A step of saving attachments that fails although it had its effect saves none of them, and leaves nothing",
        arguments: transactions)
    func failingAfterwards(transaction: AttachmentTransaction) throws {
        let steps = try transaction.steps()
        let commit = try #require(AttachmentTransaction.commit(in: steps))
        for (index, step) in steps.enumerated() {
            let result = try outcome(of: transaction, .failAfter(index + 1, EIO), "\(step)")
            #expect(result.code == (index < commit ? .ioFailed : nil), "\(step)")
            #expect(result.saved == (index < commit ? 0 : transaction.count), "\(step)")
        }
    }

    @Test(
        "A step of saving attachments that fails, with every step after it, is made up for by the next open",
        arguments: transactions)
    func stopping(transaction: AttachmentTransaction) throws {
        let steps = try transaction.steps()
        let commit = try #require(AttachmentTransaction.commit(in: steps))
        for (index, step) in steps.enumerated() {
            let result = try outcome(of: transaction, .stopBefore(index + 1), "\(step)")
            #expect(result.saved == (index < commit ? 0 : transaction.count), "\(step)")
        }
    }

    @Test(
        "A step of saving attachments that fails because the disk is full is a 507 that leaves nothing",
        arguments: transactions)
    func fullDisk(transaction: AttachmentTransaction) throws {
        let steps = try transaction.steps()
        let lastTaking = try #require(steps.lastIndex { $0.hasPrefix("rename ") })
        for index in 0...lastTaking {
            let result = try outcome(of: transaction, .fullFrom(index + 1), "\(steps[index])")
            #expect(result.code == .noSpace)
            #expect(result.saved == 0)
        }
    }

    @Test("A step that fails while attachments are rolled back is made up for by the next open")
    func rollingBack() throws {
        for count in [1, 8] {
            let transaction = AttachmentTransaction(count: count, ending: .rollBack)
            let steps = try transaction.steps()
            for (index, step) in steps.enumerated() {
                for fault in [Fault.fail(index + 1, EIO), .failAfter(index + 1, EIO), .stopBefore(index + 1)] {
                    let scratch = Scratch.inMemory
                    try transaction.prepare(scratch.store)
                    _ = code { try transaction.run(scratch.store, RecordingFileSystem(fault)) }
                    #expect(try transaction.check(scratch.store, "\(fault): \(step)") == 0)
                }
            }
        }
    }

    /// Short pieces, and such as are digested on other threads.
    @Test(
        "A failed step of writing ends the writing: the same error comes again, and the file is gone",
        arguments: [100_000, 500_000])
    func writing(pieceByteCount: Int) throws {
        for number in 1...3 {
            let fixture = try AttachmentFixture(in: .inMemory)
            fixture.store.close()
            let recording = RecordingFileSystem(.fail(number, ENOSPC))
            let (store, attachments) = try openAttachments(at: fixture.scratch.store, fileSystem: recording)
            defer { store.close() }
            // Created, and written in three pieces, the last of them at the end.
            guard number > 1 else {
                #expect(throws: CofferError(.noSpace)) { try attachments.beginStaging() }
                continue
            }
            let writer = try attachments.beginStaging()
            #expect(throws: CofferError(.noSpace)) {
                for _ in 0..<1_000_000 / pieceByteCount { try writer.write(content(pieceByteCount)) }
            }
            #expect(fixture.incoming.isEmpty)
            #expect(throws: CofferError(.noSpace)) { try writer.write([1]) }
            #expect(throws: CofferError(.noSpace)) { try writer.finish() }
            writer.cancel()
            // The store is none the worse.
            try attachments.install([attachments.stage(content(10))])
        }
    }
}
