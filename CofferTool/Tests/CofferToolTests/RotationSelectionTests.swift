import Coffer
import Foundation
import Testing

@Suite("Which stores a rotation is for, and when")
struct RotationSelectionTests {
    private let stores: ReceiptWorkspace

    init() throws { stores = try ReceiptWorkspace(storeCount: 4) }

    private func summary(_ outcome: CofferProcess.Outcome) throws -> [String: Any] {
        #expect(outcome.status == 0, "\(outcome.errors)")
        return try #require(try outcome.objects.last)
    }

    private var generations: [Int] { get throws { try stores.names.map(stores.generation) } }

    @Test("A rotation takes only stores with an old data key, where that is asked for")
    func olderThan() throws {
        let young = try summary(stores.rotate("--json", "--older-than", "1d"))
        #expect(young["notDue"] as? Int == 4 && young["stores"] as? Int == 4 && young["notTried"] as? Int == 0)
        #expect(try generations == [1, 1, 1, 1])
        Thread.sleep(forTimeInterval: 1.1)
        #expect(try summary(stores.rotate("--json", "--older-than", "0h"))["rotated"] as? Int == 4)
    }

    /// The store that shows whether the new key is the same was left out for its age, and nothing noticed another key.
    @Test("A resumed rotation looks first at which stores are due, and only then at which are done")
    func dueBeforeDone() throws {
        #expect(try stores.rotate().status == 0)
        let resumed = try summary(stores.rotate("--json", "--resume", "--older-than", "1d"))
        #expect(resumed["notDue"] as? Int == 4 && resumed["doneBefore"] as? Int == 0)
    }

    @Test("A rotation leaves out stores whose name or path is excluded, or that a list has as a comment")
    func excluded() throws {
        let outcome = try stores.rotate("--json", "--exclude", "s1.*", "--exclude", "stores/s2*")
        #expect(try summary(outcome)["stores"] as? Int == 2)
        #expect(try generations == [2, 1, 1, 2])
        try stores.work.write("# the last ones\n#stores/s1.coffer\nstores/s2.coffer\n", to: "list")
        let listed = try stores.work.coffer(
            "rotate", "list", "--key", "raw+file:old", "--new-key", "raw+file:new", "--json")
        #expect(try summary(listed)["rotated"] as? Int == 1)
        #expect(try generations == [2, 1, 2, 2])
    }

    @Test("A list with a line that is no store's path is refused as a whole, and the line is repeated nowhere")
    func notAList() throws {
        let keys = ["--key", "raw+file:old", "--new-key", "raw+file:new"]
        // A key's file that was named by mistake, and a path with a typing error.
        try stores.work.write("bc3f03d440996f35239dd", to: "key")
        try stores.work.write("stores/s0.coffer\nstores/s1.cofer\n", to: "list")
        for (list, line) in [("key", 1), ("list", 2)] {
            for arguments in [
                ["rotate", list] + keys + ["--receipts", "receipts"], ["audit", list], ["info", list],
            ] {
                let outcome = try CofferProcess.run(arguments + ["--json"], in: stores.work.folder)
                #expect(outcome.status == 64 && outcome.output.isEmpty)
                #expect(outcome.errors.contains("\(list):\(line): ") && !outcome.errors.contains("bc3f"))
            }
        }
        #expect(!FileManager.default.fileExists(atPath: stores.work.folder.appending(path: "receipts").path))
        #expect(try generations == [1, 1, 1, 1])
    }

    @Test(
        "A rotation stops after as many stores as it may rotate, and the next run does the others", arguments: [1, 3])
    func maxStores(jobs: Int) throws {
        let first = try summary(stores.rotate("--json", "--max-stores", "2", "--jobs", "\(jobs)"))
        #expect(first["rotated"] as? Int == 2 && first["notTried"] as? Int == 2)
        let second = try summary(stores.rotate("--json", "--max-stores", "2", "--jobs", "\(jobs)"))
        #expect(second["rotated"] as? Int == 2 && second["alreadyRotated"] as? Int == 2)
    }

    @Test("A rotation begins no store that it would begin too late")
    func until() throws {
        let late = try summary(stores.rotate("--json", "--until", "2020-01-01T00:00:00Z"))
        #expect(late["notTried"] as? Int == 4)
        #expect(try generations == [1, 1, 1, 1])
        let tomorrow = Date().addingTimeInterval(86_400).ISO8601Format()
        #expect(try summary(stores.rotate("--json", "--until", tomorrow))["rotated"] as? Int == 4)
    }

    @Test("A rotation waits for a store that another process has open for a while, and reports it as busy otherwise")
    func waiting() throws {
        var options = DatabaseOptions()
        options.encryptionKey = ReceiptWorkspace.keys?[0]
        let database = try Manager(directory: stores.folder).openDatabase(named: "s0", options: options)
        let busy = try stores.rotate("--json")
        #expect(busy.status == 11)
        let outcome = try stores.rotate("--json", "--wait", "10m") { _ in
            Thread.sleep(forTimeInterval: 0.3)
            try database.close()
        }
        #expect(try summary(outcome)["rotated"] as? Int == 4)
    }

    @Test("A rotation that waits for a store can be told to end as any other", .timeLimit(.minutes(30)))
    func endedWhileWaiting() throws {
        var options = DatabaseOptions()
        options.encryptionKey = ReceiptWorkspace.keys?[0]
        let database = try Manager(directory: stores.folder).openDatabase(named: "s0", options: options)
        let outcome = try stores.rotate("--json", "--wait", "1h") { process in
            // Longer than it takes to begin, also beside much other work: told before, it has nothing to say yet.
            Thread.sleep(forTimeInterval: 5)
            kill(process, SIGTERM)
        }
        #expect(outcome.status == 130, "\(outcome.errors)")
        #expect(try outcome.objects.last?["cancelled"] as? Bool == true)
        try database.close()
        #expect(try generations == [1, 1, 1, 1])
    }

    @Test("A rotation keeps a key that only some stores have there, where that is asked for")
    func keptKeys() throws {
        let added = try stores.work.coffer(
            "key", "add", "stores/s2.coffer", "--key", "raw+file:old", "--new-key", "raw+file:third")
        #expect(added.status == 0)
        #expect(try stores.rotate("--keep-key", "raw+file:third").status == 12)
        #expect(try generations == [1, 1, 1, 1])
        let outcome = try stores.rotate("--json", "--keep-key", "raw+file:third", "--keep-key-where-it-opens")
        #expect(try summary(outcome)["rotated"] as? Int == 4)
        #expect(try stores.work.coffer("ls", "stores/s2.coffer", "--key", "raw+file:third").status == 0)
        let again = try stores.rotate("--json", "--keep-key", "raw+file:third", "--keep-key-where-it-opens")
        #expect(try summary(again)["alreadyRotated"] as? Int == 4)
    }

    @Test(
        "Options that select stores and make no sense are exit status 64, and change nothing",
        arguments: [
            ["--max-stores", "0"], ["--until", "25:00"], ["--until", "soon"], ["--wait", "5"], ["--wait", "-1s"],
            ["--older-than", "90"],
        ])
    func usage(arguments: [String]) throws {
        let keys = ["--key", "raw+file:old", "--new-key", "raw+file:new"]
        let outcome = try CofferProcess.run(["rotate", "stores"] + keys + arguments, in: stores.work.folder)
        #expect(outcome.status == 64)
        #expect(try generations == [1, 1, 1, 1])
    }
}
