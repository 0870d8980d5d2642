import CofferFaults
import Foundation
import Testing

@testable import Coffer
@testable import CofferVault

/// A real process is killed at each step of what the vault does to the disk, and between them where the database library
/// writes. (Within what that writes it is killed at random, in ``CrashTests``.)
@Suite("A process killed at any step of a change", .serialized, .timeLimit(.minutes(30)))
struct KilledChangeTests {
    @Test(
        "A process killed at any step of a change leaves what was acknowledged, whole, and nothing of anything else",
        arguments: NamedChange.all)
    func killed(named: NamedChange) async throws {
        let rehearsed = try RehearsedChange(named)
        var states: [Int?] = []
        for (fault, step) in Fault.kills(in: rehearsed.steps, after: rehearsed.stepsWithSomethingAfter) {
            let sandbox = try Sandbox(copying: rehearsed.before)
            await #expect(processExitsWith: .signal(SIGKILL), "\(fault): \(step)") {
                [
                    named = named as NamedChange, path = sandbox.path as String,
                    journal = sandbox.journal.path as String, fault = fault as Fault
                ] in
                try named.change.run(TestStores(sharing: path, fileSystem: named.fileSystem(fault))) {
                    try Journal(path: journal).note("acknowledged")
                }
            }
            let verdict = StoreOracle(rehearsed: rehearsed).check(
                sandbox, acknowledged: sandbox.journal.lines.count)
            #expect(verdict.findings == [], "\(named), \(fault): \(step)")
            states.append(verdict.state)
        }
        // Forward only.
        #expect(zip(states, states.dropFirst()).allSatisfy { ($0 ?? 0) <= ($1 ?? 0) }, "\(states)")
        let counts = rehearsed.states.indices.map { state in states.count { $0 == state } }
        print("\(named): killed \(states.count) times at \(rehearsed.steps.count) steps; left in each state: \(counts)")
    }
}

/// The same in one process, so that each step can fail in several ways.
@Suite("A step of a change that fails", .timeLimit(.minutes(30)))
struct FailingChangeTests {
    private static let errors: [(number: Int32, code: CofferError.Code)] = [(EIO, .ioFailed), (ENOSPC, .noSpace)]

    /// Runs the change with `fault`, and returns its error and the state in which it left the store.
    private func outcome(
        _ rehearsed: RehearsedChange, _ fault: Fault
    ) throws -> (error: CofferError?, state: Int?) {
        let sandbox = try Sandbox(copying: rehearsed.before)
        var acknowledged = 0
        var failure: CofferError?
        do {
            try rehearsed.change.run(sandbox.stores(rehearsed.named.fileSystem(fault))) { acknowledged += 1 }
            #expect(acknowledged == rehearsed.states.count - 1)
        } catch {
            failure = try #require(error as? CofferError)
        }
        let verdict = StoreOracle(rehearsed: rehearsed).check(sandbox, acknowledged: acknowledged)
        #expect(verdict.findings == [], "\(rehearsed.named), \(fault), \(failure?.description ?? "no error")")
        return (failure, verdict.state)
    }

    @Test(
        "A step of a change that fails is an error or has no consequence, and leaves what was acknowledged, whole",
        arguments: NamedChange.all)
    func failing(named: NamedChange) throws {
        let rehearsed = try RehearsedChange(named)
        var errorCount = 0
        for (index, step) in rehearsed.steps.enumerated() {
            for (number, code) in Self.errors {
                let (error, _) = try outcome(rehearsed, .fail(index + 1, number))
                // From the rename of a manifest on, an open store can't say any more which one it has.
                #expect([nil, code, .reopenRequired].contains(error?.code), "\(named), \(step)")
                if error != nil { errorCount += 1 }
            }
            // It happened, and is reported as failed.
            _ = try outcome(rehearsed, .failAfter(index + 1, EIO))
        }
        print("\(named): each of \(rehearsed.steps.count) steps failed, with EIO and ENOSPC; \(errorCount) were errors")
    }

    @Test(
        "A step of a change that fails, and every step after it, leave what was acknowledged, whole",
        arguments: NamedChange.all)
    func stopping(named: NamedChange) throws {
        let rehearsed = try RehearsedChange(named)
        for number in 1...rehearsed.steps.count {
            _ = try outcome(rehearsed, .stopBefore(number))
            let (error, _) = try outcome(rehearsed, .fullFrom(number))
            #expect(error == nil || error?.code == .noSpace, "\(named), \(number)")
        }
        print("\(named): no step from each of \(rehearsed.steps.count) on had an effect, or none that takes space")
    }
}
