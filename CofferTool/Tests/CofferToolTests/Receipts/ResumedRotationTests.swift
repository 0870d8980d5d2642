import Coffer
import Foundation
import Testing

@Suite("A rotation that is resumed")
struct ResumedRotationTests {
    private let stores: ReceiptWorkspace

    init() throws { stores = try ReceiptWorkspace(storeCount: 4) }

    private var generations: [Int] { get throws { try stores.names.map(stores.generation) } }

    /// Rotates the first two stores of the four.
    private func begin() throws { try #require(try stores.rotate("--max-stores", "2").status == 0) }

    private func resume(
        _ list: String, from old: String = "old", to new: String, _ more: String...
    ) throws -> CofferProcess.Outcome {
        try CofferProcess.run(
            [
                "rotate", list, "--key", "raw+file:\(old)", "--new-key", "raw+file:\(new)", "--receipts", "receipts",
                "--resume", "--keep-going", "--json",
            ] + more, in: stores.work.folder)
    }

    private func isRefused(_ outcome: CofferProcess.Outcome) throws -> Bool {
        #expect(outcome.output.isEmpty)
        return try outcome.status == 1 && outcome.failure["code"] as? String == "anotherRotation"
    }

    @Test(
        "A rotation that is resumed with another new key changes nothing, also where the list has none of the done stores"
    )
    func anotherKey() throws {
        try begin()
        try stores.work.write("stores/s2.coffer\nstores/s3.coffer\n", to: "rest")
        for list in ["rest", "stores"] {
            #expect(try isRefused(resume(list, to: "third")))
            #expect(try isRefused(resume(list, from: "new", to: "third")))
            #expect(try isRefused(resume(list, to: "third", "--dry-run")))
        }
        #expect(try generations == [2, 2, 1, 1])
        // Another file has nothing to go on with.
        let outcome = try resume("rest", to: "new")
        #expect(try outcome.status == 0 && outcome.objects.last?["rotated"] as? Int == 2)
        // Nobody is told that all is done who has another key.
        #expect(try isRefused(resume("stores", to: "third")))
        // Without --resume all are asked.
        let next = try stores.rotate("--json", from: "new", to: "third")
        #expect(try next.status == 0 && next.objects.last?["rotated"] as? Int == 4)
    }

    @Test("A store that a process has open shows whether the new key of a resumed rotation is the same")
    func inUse() throws {
        try begin()
        var options = DatabaseOptions()
        options.encryptionKey = ReceiptWorkspace.keys?[1]
        let databases = try ["s0", "s1"].map {
            try Manager(directory: stores.folder).openDatabase(named: $0, options: options)
        }
        #expect(try isRefused(resume("stores", to: "third")))
        #expect(try resume("stores", to: "new").status == 0)
        for database in databases { try database.close() }
        #expect(try generations == [2, 2, 2, 2])
    }

    @Test("Where no store that has the new key can be found, a rotation is not resumed unless nothing is left to do")
    func nothingToTry() throws {
        try begin()
        // One is gone, and one has a key of its own since.
        try FileManager.default.moveItem(
            at: stores.folder.appending(path: "s0.coffer"), to: stores.work.folder.appending(path: "s0.coffer"))
        #expect(
            try stores.work.coffer(
                "rekey", "stores/s1.coffer", "--key", "raw+file:new", "--new-key", "raw+file:third"
            ).status == 0)
        #expect(try isRefused(resume("stores", to: "new")))
        #expect(try stores.names.dropFirst().map(stores.generation) == [3, 1, 1])
        let young = try resume("stores", to: "new", "--older-than", "1d")
        #expect(try young.status == 0 && young.objects.last?["notDue"] as? Int == 3)
    }

    @Test("A store that a killed run has changed and not recorded shows the new key; one that it has not shows nothing")
    func killed() throws {
        try begin()
        // As a kill leaves it: nothing says what became of the first store.
        let lines = try stores.lines
        let begun = try #require(lines.firstIndex { $0.contains("\"begun\"") })
        try stores.replace(Array(lines[...begun]))
        #expect(try isRefused(resume("stores", to: "third")))
        #expect(try isRefused(resume("stores", from: "new", to: "third")))
        #expect(try generations == [2, 2, 1, 1])
        #expect(try resume("stores", to: "new").status == 0)
        #expect(try stores.records.contains { $0["completes"] != nil })

        let others = try ReceiptWorkspace(storeCount: 2)
        try #require(try others.rotate("--until", "2020-01-01T00:00:00Z").status == 0)
        #expect(try others.rotate("--resume", to: "third").status == 0)
    }

    // MARK: Rehearsals

    @Test("A rehearsal reads receipts to say what is due, and writes neither them nor metrics")
    func rehearsal() throws {
        try begin()
        let before = try stores.work.contents(of: ".")
        let outcome = try resume("stores", to: "new", "--dry-run", "--metrics", "m.prom", "--label", "a")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(try outcome.objects.last?["due"] as? Int == 2 && outcome.objects.last?["doneBefore"] as? Int == 2)
        #expect(try stores.work.contents(of: ".") == before)
        // What would be made is not there yet.
        try FileManager.default.removeItem(at: stores.work.folder.appending(path: "receipts"))
        #expect(try resume("stores", to: "new", "--dry-run").status == 0)
        #expect(!FileManager.default.fileExists(atPath: stores.work.folder.appending(path: "receipts").path))
        try stores.work.write("no receipts\n", to: "receipts")
        #expect(try resume("stores", to: "new", "--dry-run").status == 26)
    }

    @Test("A rehearsal runs a command for the new key only where a store needs it, or to verify")
    func rehearsalWithCommand() throws {
        try stores.work.write("echo ran >> calls\ncat new\n", to: "service")
        func callCount() -> Int {
            let calls = stores.work.folder.appending(path: "calls")
            return (try? String(contentsOf: calls, encoding: .utf8))?.split(separator: "\n").count ?? 0
        }
        func rehearse(_ more: String...) throws -> CofferProcess.Outcome {
            try CofferProcess.run(
                ["rotate", "stores", "--key", "raw+file:old", "--new-key", "raw+cmd:sh service", "--dry-run"] + more,
                in: stores.work.folder)
        }
        #expect(try rehearse().lines.last == "4 stores: 4 to be rotated")
        #expect(try rehearse("--key-for-each-store", "--jobs", "2").lines.last == "4 stores: 4 to be rotated")
        #expect(callCount() == 0)
        #expect(try rehearse("--verify").status == 0)
        #expect(callCount() == 1)
        try begin()
        // One command is for all, and one for each of the two.
        #expect(try rehearse().lines.last == "4 stores: 2 rotated before, 2 to be rotated")
        #expect(callCount() == 2)
        #expect(try rehearse("--key-for-each-store").lines.last == "4 stores: 2 rotated before, 2 to be rotated")
        #expect(callCount() == 4)
        // The old key again is told apart where it is found.
        try stores.work.write("cat old\n", to: "service")
        #expect(try rehearse("--keep-going").status == 3)
    }
}
