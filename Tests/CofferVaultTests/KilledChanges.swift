import CofferFaults
import CofferVault
import Foundation
import Testing

/// A change in the middle of which a process is killed. What an exit test is given has to be of a type that it can name.
enum KilledChange: Codable, SteppedChange {
    case store(Change)
    case slots(SlotChange)
    case attachments(AttachmentTransaction)
    case batches(BatchedTransaction)

    private var change: any SteppedChange {
        switch self {
        case .store(let change): change
        case .slots(let change): change
        case .attachments(let change): change
        case .batches(let change): change
        }
    }

    func prepare(_ path: String) throws { try change.prepare(path) }

    func run(_ path: String, _ fileSystem: any FileSystem) throws { try change.run(path, fileSystem) }

    /// Runs the change in a process of its own, which is killed at `fault`: it has no chance to end anything.
    func run(_ path: String, killedAt fault: Fault, _ sourceLocation: SourceLocation = #_sourceLocation) async {
        await #expect(processExitsWith: .signal(SIGKILL), "\(self), \(fault)", sourceLocation: sourceLocation) {
            [change = self as KilledChange, path = path as String, fault = fault as Fault] in
            try change.run(path, RecordingFileSystem(fault))
        }
    }

    /// Has a process killed at every one of `steps`, each time in a folder of its own, and returns what `check` says of each.
    ///
    /// - Parameter after: the steps behind which a process is killed, too: by default the last.
    func killed<Outcome>(
        at steps: [String], after: Set<Int>? = nil, _ sourceLocation: SourceLocation = #_sourceLocation,
        check: (_ scratch: Scratch, _ fault: Fault, _ step: String) throws -> Outcome
    ) async throws -> [Outcome] {
        var outcomes: [Outcome] = []
        for (fault, step) in Fault.kills(in: steps, after: after) {
            let scratch = Scratch.inMemory
            try prepare(scratch.store)
            await run(scratch.store, killedAt: fault, sourceLocation)
            outcomes.append(try check(scratch, fault, step))
        }
        return outcomes
    }
}
