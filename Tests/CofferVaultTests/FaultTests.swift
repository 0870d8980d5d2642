import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

@Suite("A step that fails")
struct FaultTests {
    private static let errors: [(number: Int32, code: CofferError.Code)] = [(EIO, .ioFailed), (ENOSPC, .noSpace)]

    /// Runs `change` with `fault` and returns the code of its error.
    private func outcome(
        of change: Change, _ fault: Fault, _ check: (Scratch, CofferError.Code?) throws -> Void
    ) throws {
        let scratch = Scratch.inMemory
        try change.prepare(scratch.store)
        let code = code { try change.run(scratch.store, RecordingFileSystem(fault)) }
        try check(scratch, code)
    }

    @Test(
        "A step that fails is an error, and leaves a whole store or a free name and nothing beside it",
        arguments: Change.allCases)
    func failing(change: Change) throws {
        let steps = try change.steps()
        for (index, step) in steps.enumerated() {
            for error in Self.errors {
                let fault = Fault.fail(index + 1, error.number)
                try outcome(of: change, fault) { scratch, code in
                    #expect(code == error.code, "\(step)")
                    let isWhole = isWholeOrElseFree(scratch.store, key: change.key, after: fault)
                    switch change {
                    case .creating, .creatingUnencrypted: #expect(!isWhole, "\(step)")
                    // Up to the sync that makes the loss of the name durable.
                    case .deleting: #expect(isWhole == (index < 2), "\(step)")
                    case .recovering: #expect(isWhole)
                    }
                    #expect(scratch.names == (isWhole ? ["people.coffer"] : []), "\(step)")
                }
            }
        }
        print("\(change): each of \(steps.count) steps failed with EIO and with ENOSPC")
    }

    @Test(
        "A step that fails although it had its effect is an error too, and the next change removes what it leaves",
        arguments: Change.allCases)
    func failingAfterwards(change: Change) throws {
        for (index, step) in try change.steps().enumerated() {
            let fault = Fault.failAfter(index + 1, EIO)
            try outcome(of: change, fault) { scratch, code in
                #expect(code == .ioFailed, "\(step)")
                let isWhole = isWholeOrElseFree(scratch.store, key: change.key, after: fault)
                try makeStore(at: scratch.path + "/other.coffer")
                #expect(scratch.names == ["other.coffer"] + (isWhole ? ["people.coffer"] : []), "\(step)")
            }
        }
    }

    @Test(
        "A step that fails because the disk is full, from any step on, leaves nothing of a creation",
        arguments: [Change.creating, .creatingUnencrypted])
    func fullDiskCreating(change: Change) throws {
        let steps = try change.steps()
        let lastTaking = try #require(steps.lastIndex { $0.hasPrefix("write ") })
        for number in 1...lastTaking + 1 {
            try outcome(of: change, .fullFrom(number)) { scratch, code in
                #expect(code == .noSpace)
                #expect(scratch.names == [])
            }
        }
    }

    @Test("A step that fails because the disk is full keeps no store from being deleted")
    func fullDiskDeleting() throws {
        try outcome(of: .deleting, .fullFrom(1)) { scratch, code in
            #expect(code == nil)
            #expect(scratch.names == [])
        }
    }

    @Test("A full disk stops a recovery at any step, which then deletes nothing and is made up for later")
    func fullDiskRecovering() throws {
        try outcome(of: .recovering, .fullFrom(1)) { scratch, code in
            #expect(code == .noSpace)
            let names = try FileManager.default.contentsOfDirectory(atPath: scratch.store)
            #expect(names.filter { $0.hasPrefix("g") }.count == 4)
            #expect(isWholeOrElseFree(scratch.store, key: rawKey(), after: .fullFrom(1)))
        }
    }

    @Test(
        "A step that fails, with every step after it, leaves a whole store or a free name", arguments: Change.allCases)
    func stopping(change: Change) throws {
        for number in 1...(try change.steps().count) {
            let fault = Fault.stopBefore(number)
            try outcome(of: change, fault) { scratch, code in
                #expect(code == .ioFailed)
                let isWhole = isWholeOrElseFree(scratch.store, key: change.key, after: fault)
                try makeStore(at: scratch.path + "/other.coffer")
                #expect(scratch.names == ["other.coffer"] + (isWhole ? ["people.coffer"] : []), "\(fault)")
            }
        }
    }

    @Test("A step that fails says what failed, on what, and why")
    func description() throws {
        let error = CofferError(SystemError(call: "fsync", number: EIO), at: "/data/people.coffer")
        #expect(error.description == "/data/people.coffer: input or output failed: fsync: Input/output error (500)")
        #expect(error.systemErrorNumber == EIO)
    }

    @Test(
        "A step that fails has the status of its cause",
        arguments: [(ENOSPC, 507), (EDQUOT, 507), (EROFS, 403), (EACCES, 500), (EPERM, 500), (EIO, 500), (EMFILE, 500)])
    func statuses(number: Int32, status: Int) {
        #expect(CofferError(SystemError(call: "write", number: number), at: "x").status == status)
    }
}
