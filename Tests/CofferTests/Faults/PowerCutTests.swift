import CofferFaults
import Foundation
import Testing

@testable import Coffer
@testable import CofferVault

@Suite("A power cut at any time of a change", .timeLimit(.minutes(30)))
struct PowerCutTests {
    @Test(
        "A power cut at any time of a change leaves what was acknowledged, whole, whatever had not been synced",
        arguments: NamedChange.all)
    func cut(named: NamedChange) throws {
        let rehearsed = try RehearsedChange(named)
        var replay = PowerCutReplay(rehearsed)
        if DamageTests.isExhaustive { (replay.sampleCount, replay.secondCutCount) = (50, 10) }
        try replay.run()
        #expect(replay.findings.isEmpty, "\(named): \(replay.findings.prefix(5))")
        #expect(replay.coverage.disks > rehearsed.steps.count, "the replay did nothing")
        print("\(named): \(replay.coverage)")
    }

    /// Of a key change that syncs the whole file system after the contents; ``NamedChange/Name/changingKeyFileByFile`` has
    /// the same syncs without that one.
    private static let afterAllWasSynced: [Int: (step: String, reason: String)] = [
        3: ("fsync directory attachments", "syncfs was before it, and says all but that the journal failed"),
        4: ("fsync directory incoming", "it is empty, so no name in it can be lost"),
        5: ("fsync directory g0000000000000002", "syncfs was before it, and says all but that the journal failed"),
        6: ("fsync directory db.coffer", "syncfs was before it, and says all but that the journal failed"),
        9: ("fsync directory db.coffer", "what comes back is stale, and the next opening removes it"),
    ]

    /// Syncs that nothing is found without, by their number in the order of the change, and why.
    private static let withoutConsequence: [NamedChange.Name: [Int: (step: String, reason: String)]] = [
        .savingMany: [
            4: ("fsync directory attachments", "syncfs was before it, and says all but that the journal failed")
        ],
        .savingBatches: [
            3: ("syncfs", "it is early, and the last one is for all"),
            6: ("fsync directory attachments", "syncfs was before it, and says all but that the journal failed"),
        ],
        .creating: [
            2: ("fsync directory attachments", "it is empty, so no name in it can be lost"),
            3: ("fsync directory incoming", "it is empty, so no name in it can be lost"),
        ],
        .changingKey: afterAllWasSynced, .removingKey: afterAllWasSynced,
        .convertingToSealed: afterAllWasSynced, .convertingToSQLite: afterAllWasSynced,
        .changingKeyFileByFile: [
            7: ("fsync directory incoming", "it is empty, so no name in it can be lost"),
            12: ("fsync directory db.coffer", "what comes back is stale, and the next opening removes it"),
        ],
        .backingUp: [
            3: ("fsync directory attachments", "syncfs was before it, and says all but that the journal failed"),
            4: ("fsync directory incoming", "it is empty, so no name in it can be lost"),
            5: ("fsync directory g0000000000000001", "syncfs was before it, and says all but that the journal failed"),
        ],
        .installing: [
            2: ("fsync directory attachments", "syncfs was before it, and says all but that the journal failed"),
            3: ("fsync directory incoming", "it is empty, so no name in it can be lost"),
            4: ("fsync directory g0000000000000001", "syncfs was before it, and says all but that the journal failed"),
            5: ("fsync directory .coffer-", "syncfs was before it, and says all but that the journal failed"),
        ],
        .installingFirst: [5: ("fsync directory incoming", "it is empty, so no name in it can be lost")],
        // Of the recovery that the next opening finishes it with.
        .restoringKeys: [
            5: ("fsync directory db.coffer", "what comes back is stale, and the next opening removes it again"),
            6: ("fsync directory incoming", "what comes back is stale, and the next opening removes it again"),
        ],
        .recovering: [
            3: ("fsync directory db.coffer", "what comes back is stale, and the next opening removes it again"),
            5: ("fsync directory incoming", "what comes back is stale, and the next opening removes it again"),
        ],
    ]

    @Test("A power cut would lose something, were any one of the syncs left out", arguments: NamedChange.all)
    func omitted(named: NamedChange) throws {
        let rehearsed = try RehearsedChange(named)
        var replay = PowerCutReplay(rehearsed)
        let synchronizations = replay.synchronizations
        let exceptions = Self.withoutConsequence[named.name] ?? [:]
        for (number, (index, step)) in zip(1..., synchronizations) {
            replay = replay.omitting(index)
            try replay.run(stopsAtFinding: true)
            let exception = exceptions[number]
            #expect(exception.map { step.hasPrefix($0.step) } != false, "\(named): sync \(number) is \(step)")
            #expect(replay.findings.isEmpty == (exception != nil), "\(named), without \(step), the sync \(number)")
        }
        print(
            "\(named): \(synchronizations.count - exceptions.count) of \(synchronizations.count) syncs are missed when left out"
        )
    }
}
