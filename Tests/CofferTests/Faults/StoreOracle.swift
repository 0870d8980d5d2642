import CofferFaults
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferVault

/// A change that was rehearsed once: what the store holds after each of its parts, and what steps it takes.
final class RehearsedChange: Sendable {
    let named: NamedChange
    let change: any StoreChange
    /// Copied for each run.
    let before: Sandbox
    /// What the store holds before, and after each part that is acknowledged; nil where there is none.
    let states: [StoreContents?]
    let steps: [String]
    /// What was done to `base`, by steps, by the database library and by promises.
    let log: [DiskOperation]
    let base: DiskTree

    init(_ named: NamedChange) throws {
        self.named = named
        let change = named.change
        self.change = change
        before = try Sandbox()
        try change.prepare(before.stores())

        let first = try Sandbox(copying: before)
        var states = [try Self.contents(of: first.stores(), change)]
        let second = try Sandbox(copying: before)
        try change.run(second.stores()) { states.append(try Self.contents(of: second.stores(), change)) }
        self.states = states

        let third = try Sandbox(copying: before)
        let recording = named.fileSystem()
        base = try recording.watch(third.path)
        var acknowledged = 0
        try change.run(third.stores(recording)) {
            acknowledged += 1
            recording.acknowledge(acknowledged)
        }
        recording.observe()
        steps = recording.effectNames
        log = recording.log
    }

    /// The steps, from 1, after which the database library or a promise comes before the next one: killed after them is
    /// another thing than killed before the next.
    var stepsWithSomethingAfter: Set<Int> {
        var steps: Set = [self.steps.count]
        var count = 0
        for operation in log {
            switch operation {
            case .databaseFile, .acknowledged: steps.insert(count)
            default: count += 1
            }
        }
        return steps.subtracting([0])
    }

    private static func contents(of stores: TestStores, _ change: any StoreChange) throws -> StoreContents? {
        for key in change.differentKeys {
            var options = DatabaseOptions()
            options.encryptionKey = key
            do {
                guard stores.manager.databaseExists(named: "db") else { return nil }
                return try StoreContents(of: stores.manager.openDatabase(named: "db", options: options))
            } catch let error as CofferError where error.status == 401 {}
        }
        throw CofferError(.wrongKey, "no key of the change opens the store")
    }
}

/// What is wrong with what a fault left of a store.
struct StoreOracle {
    let rehearsed: RehearsedChange
    /// For the first opening, which recovers.
    var fileSystem: any FileSystem = SystemFileSystem()
    /// Called right after it.
    var didOpen: () -> Void = {}
    /// Whether it is also used afterwards, as any other store is.
    var usesStore = true

    private var change: any StoreChange { rehearsed.change }

    struct Verdict {
        /// Which of the states it is in.
        var state: Int?
        var findings: [String] = []
    }

    /// Opens the store after whatever happened when `acknowledged` parts of the change were promised, and compares.
    ///
    /// All that was promised must be there; beyond it the part that was under way may be there, whole. Nothing else, no
    /// leftovers, and opening once more changes no byte.
    func check(_ sandbox: Sandbox, acknowledged: Int) -> Verdict {
        var verdict = Verdict()
        do {
            try check(sandbox, acknowledged: acknowledged, &verdict)
        } catch {
            verdict.findings.append("\(error)")
        }
        return verdict
    }

    private func check(_ sandbox: Sandbox, acknowledged: Int, _ verdict: inout Verdict) throws {
        let stores = sandbox.stores()
        let states = rehearsed.states
        let allowed = acknowledged...min(acknowledged + 1, states.count - 1)
        let exists = stores.manager.databaseExists(named: "db")
        let (opened, key) = exists ? try open(sandbox.stores(fileSystem), &verdict) : (nil, nil)
        didOpen()
        let found = try opened.map { try StoreContents(of: $0) }
        verdict.state = allowed.last { states[$0] == found && (found == nil || change.key(inState: $0) === key) }
        if verdict.state == nil, allowed.contains(where: { states[$0] == found }) {
            verdict.findings.append("another key opens it than should by now")
        } else if verdict.state == nil {
            let expected = states[allowed.upperBound]
            verdict.findings.append(
                found.flatMap { found in expected.map { found.difference(from: $0) } }
                    ?? (found == nil ? "the store is gone" : "there is a store"))
        }
        try checkFiles(of: opened, stores, mayLeaveFiles: change.mayLeaveFiles(acknowledged: acknowledged), &verdict)
        try opened?.close()
        if exists {
            try checkRest(sandbox, key, &verdict)
            if usesStore { try checkUse(stores, key, found, &verdict) }
        }
        try checkSiblings(stores, exists, acknowledged: acknowledged, &verdict)
    }

    /// Exactly one of the keys opens it.
    private func open(_ stores: TestStores, _ verdict: inout Verdict) throws -> (Database?, SymmetricKey?) {
        var opened: [(Database?, SymmetricKey?)] = []
        for key in change.differentKeys + [testKey(99)] {
            do {
                opened.append((try stores.open(key: key) { $0.create = false }, key))
            } catch let error as CofferError where error.status == 401 {}
        }
        if opened.count != 1 { verdict.findings.append("\(opened.count) keys open it") }
        return opened.first ?? (nil, nil)
    }

    /// Nothing but what belongs there.
    private func checkFiles(
        of database: Database?, _ stores: TestStores, mayLeaveFiles: Bool, _ verdict: inout Verdict
    ) throws {
        guard let database else { return }
        let generation = try stores.generation()
        let names = { (url: URL) in try FileManager.default.contentsOfDirectory(atPath: url.path).sorted() }
        if try names(stores.url()) != ["MANIFEST", generation.lastPathComponent] {
            verdict.findings.append("in the store there are \(try names(stores.url()))")
        }
        let parts = try names(generation).filter { !$0.hasPrefix("db.sqlite3") }
        if parts != ["attachments", "incoming"] { verdict.findings.append("in the generation there are \(parts)") }
        let incoming = try names(generation.appending(path: "incoming"))
        if !incoming.isEmpty { verdict.findings.append("in incoming/ there are \(incoming)") }

        let expected = try Self.fileNames(of: database)
        let files = Set(try names(generation.appending(path: "attachments")))
        if !expected.isSubset(of: files) { verdict.findings.append("a file of an attachment is missing") }
        if !files.isSubset(of: expected) {
            guard mayLeaveFiles else { return verdict.findings.append("attachments/ holds a file without a row") }
            let contents = try StoreContents(of: database)
            try database.compact()
            if Set(try names(generation.appending(path: "attachments"))) != expected {
                verdict.findings.append("compaction leaves a file without a row")
            }
            if try StoreContents(of: database) != contents {
                verdict.findings.append("compaction changes what was compacted")
            }
        }
    }

    private static func fileNames(of database: Database) throws -> Set<String> {
        try database.storage.read { (tables) throws(CofferError) in
            try tables.attachments.names(by: database.storage.attachments.naming)
        }
    }

    /// The next opening finds nothing to do, and reading alone changes nothing.
    private func checkRest(_ sandbox: Sandbox, _ key: SymmetricKey?, _ verdict: inout Verdict) throws {
        let before = try sandbox.stores().snapshot()
        let recording = RecordingFileSystem()
        for isReadOnly in [false, true] {
            let database = try sandbox.stores(recording).open(key: key) {
                $0.create = false
                $0.readOnly = isReadOnly
            }
            _ = try database.documentCount
            try database.close()
        }
        if recording.stepCount > 0 { verdict.findings.append("opening again does \(recording.stepNames)") }
        if try sandbox.stores().snapshot() != before { verdict.findings.append("opening again changes bytes") }
    }

    /// It goes on as any other store.
    private func checkUse(
        _ stores: TestStores, _ key: SymmetricKey?, _ contents: StoreContents?, _ verdict: inout Verdict
    ) throws {
        let database = try stores.open(key: key) { $0.create = false }
        let draft = try database.document(withID: "afterwards").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Data("afterwards".utf8))
        try draft.save()
        var now = try StoreContents(of: database)
        if now.documents.removeValue(forKey: "afterwards")?.attachments != ["a": Data("afterwards".utf8)] {
            verdict.findings.append("what is saved afterwards is not there")
        }
        if now.documents != contents?.documents { verdict.findings.append("saving afterwards changes other documents") }
        try database.close()
    }

    /// What is left beside the stores goes with the next creation.
    private func checkSiblings(
        _ stores: TestStores, _ exists: Bool, acknowledged: Int, _ verdict: inout Verdict
    ) throws {
        try change.checkNeighbours(stores, acknowledged: acknowledged)
        let names = {
            try FileManager.default.contentsOfDirectory(atPath: stores.directory.path).sorted().filter {
                !change.neighbours.contains($0)
            }
        }
        guard try names() != (exists ? ["db.coffer"] : []) else { return }
        try stores.open("other").close()
        if try names() != (exists ? ["db.coffer"] : []) + ["other.coffer"] {
            verdict.findings.append("beside the store there are \(try names())")
        }
    }
}
