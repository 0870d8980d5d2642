import Foundation
import Testing

private let canWatch = (try? Workspace().shell("strace -o /dev/null true").status) == 0

@Suite("Receipts that last")
struct ReceiptTests {
    private let stores: ReceiptWorkspace

    init() throws { stores = try ReceiptWorkspace(storeCount: 4) }

    private func outcomes(_ type: String) throws -> [String] {
        try stores.records.filter { $0["type"] as? String == type }.map { $0["outcome"] as? String ?? "" }
    }

    @Test("Receipts say of each store that it is begun, and then what became of it, with time, place and both UUIDs")
    func lines() throws {
        let outcome = try stores.rotate("--json", "--label", "ticket 17", "--label", "quarterly")
        #expect(outcome.status == 0, "\(outcome.errors)")
        let records = try stores.records
        let types = records.map { $0["type"] as? String ?? "" }.joined(separator: " ")
        #expect(types == "run begun done begun done begun done begun done end")
        #expect(records[0]["labels"] as? [String] == ["ticket 17", "quarterly"])
        for name in ["host", "user", "tool", "time"] { #expect((records[0][name] as? String)?.isEmpty == false) }
        #expect(Set(records.map { $0["run"] as? String }).count == 1)
        let (begun, done) = (records[1], records[2])
        for name in ["path", "uuid", "databaseUUID"] {
            #expect(begun[name] as? String == done[name] as? String && begun[name] != nil, "\(name)")
        }
        #expect((begun["path"] as? String)?.hasPrefix("/") == true)
        #expect(begun["generation"] as? Int == 1 && done["generation"] as? Int == 2)
        #expect(done["documents"] as? Int == 1 && (done["databaseBytes"] as? Int ?? 0) > 0)
        #expect(records.last?["rotated"] as? Int == 4)
        let verified = try stores.verify()
        #expect(verified.status == 0)
        let summary = try #require(try verified.objects.first)
        #expect(summary["lines"] as? Int == 10 && summary["rotated"] as? Int == 4 && summary["runs"] as? Int == 1)
        #expect(try summary["last"] as? String == outcome.objects.last?["receipts"] as? String)
    }

    @Test("Receipts are appended to by a resumed run, which asks only the stores that are not done")
    func resumed() throws {
        // A key that is not dropped keeps the third store from being rotated, and the run from going on.
        #expect(
            try stores.work.coffer(
                "key", "add", "stores/s2.coffer", "--key", "raw+file:old", "--new-key", "raw+file:third"
            ).status == 0)
        let first = try stores.rotate("--json")
        #expect(first.status == 3)
        let resumed = try stores.rotate("--json", "--resume", "--drop-other-keys")
        #expect(resumed.status == 0, "\(resumed.errors)")
        let summary = try #require(try resumed.objects.last)
        #expect(summary["stores"] as? Int == 4 && summary["doneBefore"] as? Int == 2)
        #expect(summary["rotated"] as? Int == 2)
        for name in stores.names { #expect(try stores.rotationCount(of: name) == 1) }
        let runs = try stores.records.filter { $0["type"] as? String == "run" }
        #expect(runs.count == 2 && runs[0]["rotation"] as? String == runs[1]["rotation"] as? String)
    }

    /// A file without a line end was taken for receipts that a kill had cut off.
    @Test(
        "Receipts are written to no file that is something else, such as a key's",
        arguments: ["my only password", "{\"a\":1}"])
    func otherFile(contents: String) throws {
        try stores.work.write(contents, to: "receipts")
        let outcome = try stores.rotate("--json")
        #expect(try outcome.status == 64 && outcome.failure["code"] as? String == "invalidArgument")
        #expect(try stores.work.contents(of: ".")["receipts"] == Data(contents.utf8))
        for name in stores.names { #expect(try stores.generation(of: name) == 1) }
    }

    @Test("Receipts leave out no store that was changed since")
    func changedSince() throws {
        #expect(try stores.rotate().status == 0)
        #expect(
            try stores.work.coffer(
                "rekey", "stores/s1.coffer", "--key", "raw+file:new", "--new-key", "raw+file:old"
            ).status == 0)
        let outcome = try stores.rotate("--json", "--resume")
        #expect(outcome.status == 0)
        #expect(try outcome.objects.last?["rotated"] as? Int == 1 && outcome.objects.last?["doneBefore"] as? Int == 3)
        #expect(try stores.opens("s1", 1))
    }

    @Test("Receipts of a run that was killed after a change are completed by the next one, whatever its keys")
    func completed() throws {
        #expect(try stores.rotate().status == 0)
        // As the kill leaves it: the second store is changed, and nothing says so.
        let lines = try stores.lines
        let place = try #require(lines.firstIndex { $0.contains("\"done\"") && $0.contains("s1.coffer") })
        try stores.replace(Array(lines[..<place]))
        #expect(try stores.verify().objects.first?["begun"] as? [String] != [])
        #expect(try stores.rotate("--resume").status == 0)
        let completing = try #require(try stores.records.first { $0["completes"] != nil })
        #expect(completing["outcome"] as? String == "alreadyRotated")
        #expect(try completing["completes"] as? String == stores.records[0]["run"] as? String)
        #expect(try stores.rotationCount(of: "s1") == 1)
        #expect(try stores.verify().objects.first?["begun"] as? [String] == [])

        try stores.replace(Array(lines[..<place]))
        #expect(try stores.rotate(from: "new", to: "third").status == 0)
        #expect(try stores.records.first { $0["completes"] != nil }?["outcome"] as? String == "changed")
        #expect(try stores.rotationCount(of: "s1") == 2)
    }

    @Test("Receipts that were begun and came to nothing are no rotation")
    func cameToNothing() throws {
        #expect(try stores.rotate().status == 0)
        let lines = try stores.lines
        let place = try #require(lines.firstIndex { $0.contains("\"begun\"") && $0.contains("s0.coffer") })
        let other = try ReceiptWorkspace(storeCount: 1)
        // The line is another store's: it is at this place and has this generation, and was never changed.
        try other.replace(Array(lines[...place]))
        #expect(try other.rotate("--resume").status == 0)
        #expect(try other.rotationCount(of: "s0") == 1)
        #expect(try !other.records.contains { $0["completes"] != nil })
    }

    @Test(
        "Receipts are on the disk before the store that they are about is changed",
        .enabled(if: canWatch, "strace may not watch"))
    func order() throws {
        let outcome = try stores.work.shell(
            "strace -f -s 300 -e trace=write,fsync,rename,renameat,renameat2 -o trace $coffer rotate stores/s0.coffer "
                + "--key raw+file:old --new-key raw+file:new --receipts receipts")
        #expect(outcome.status == 0)
        let calls = try String(contentsOf: stores.work.folder.appending(path: "trace"), encoding: .utf8).split(
            separator: "\n")
        let begun = try #require(calls.firstIndex { $0.contains("write(") && $0.contains(#"\"begun\""#) })
        let descriptor = try #require(calls[begun].split(separator: "write(").last?.prefix { $0 != "," })
        let synced = try #require(calls[begun...].firstIndex { $0.contains("fsync(\(descriptor))") })
        let changed = try #require(calls.firstIndex { $0.contains("rename") && $0.contains("MANIFEST") })
        let done = try #require(calls.firstIndex { $0.contains("write(") && $0.contains(#"\"done\""#) })
        #expect(begun < synced && synced < changed && changed < done)
        #expect(calls[done...].contains { $0.contains("fsync(\(descriptor))") })
    }

    // MARK: Bad input

    @Test("Receipts that were changed, cut out or exchanged are damage, which no run appends to")
    func changed() throws {
        #expect(try stores.rotate().status == 0)
        let lines = try stores.lines
        func changed(_ change: (inout [String]) -> Void) -> [String] {
            var copy = lines
            change(&copy)
            return copy
        }
        let cases = [
            changed { $0.remove(at: 4) }, changed { $0.removeFirst() }, changed { $0.swapAt(3, 4) },
            changed { $0.append($0[9]) }, changed { $0.append("{}") }, changed { $0.insert("no JSON", at: 0) },
            changed { $0[3] = $0[3].replacing("s1.coffer", with: "s9.coffer") },
        ]
        for changed in cases {
            try stores.replace(changed)
            let outcome = try stores.verify()
            #expect(outcome.status == 26)
            #expect(try outcome.failure["code"] as? String == "damaged")
            #expect(try stores.rotate(from: "new", to: "third").status == 26)
            #expect(try stores.lines == changed)
        }
        for name in stores.names { #expect(try stores.generation(of: name) == 2) }
        try stores.replace(lines)
        #expect(try stores.verify().status == 0)
    }

    @Test("Receipts that were cut off at the end show where the last line's SHA-256 was kept")
    func cutOff() throws {
        let last = try #require(try stores.rotate("--json").objects.last?["receipts"] as? String)
        let proven = try stores.verify("--last", last)
        #expect(try proven.status == 0 && proven.objects.first?["lastIsProven"] as? Bool == true)
        #expect(try stores.verify().objects.first?["lastIsProven"] as? Bool == false)
        // Nothing follows the last line, so nothing proves what it says.
        var changed = try stores.lines
        changed[changed.count - 1] = changed[changed.count - 1].replacing("\"rotated\":4", with: "\"rotated\":3")
        try stores.replace(changed)
        #expect(try stores.verify().status == 0)
        #expect(try stores.verify("--last", last).status == 26)
        let text = try stores.work.coffer("receipts", "verify", "receipts")
        #expect(text.output.contains("not proven: only --last proves it"))
        changed[changed.count - 1] = changed[changed.count - 1].replacing("\"rotated\":3", with: "\"rotated\":4")
        try stores.replace(changed)
        // More may have been appended since.
        #expect(try stores.rotate("--resume").status == 0)
        #expect(try stores.verify("--last", last.uppercased()).status == 0)
        try stores.replace(Array(try stores.lines[..<8]))
        #expect(try stores.verify().status == 0)
        #expect(try stores.verify("--last", last).status == 26)
        #expect(try stores.verify("--last", "abc").status == 64)
    }

    @Test("Receipts with a line that has no end are noticed, and the next run removes that line")
    func noEnd() throws {
        #expect(try stores.rotate().status == 0)
        let lines = try stores.lines
        try stores.replace(lines + [String(lines[9].prefix(40))], end: "")
        let outcome = try stores.verify()
        #expect(outcome.status == 3)
        #expect(try outcome.failure["code"] as? String == "cutLine")
        #expect(try stores.rotate("--resume").status == 0)
        #expect(try stores.verify().status == 0)
        #expect(try Array(stores.lines[..<10]) == lines)
    }

    @Test("Receipts are one run's at a time")
    func busy() throws {
        try stores.replace([], end: "")
        let descriptor = open(stores.work.folder.appending(path: "receipts").path, O_RDWR)
        defer { close(descriptor) }
        #expect(flock(descriptor, LOCK_EX) == 0)
        let outcome = try stores.rotate("--json")
        #expect(outcome.status == 11)
        #expect(try outcome.failure["status"] as? Int == 503)
        #expect(try stores.generation(of: "s0") == 1)
    }

    @Test("Receipts that can't be written keep every store as it is")
    func noRoom() throws {
        // No file grows beyond 128 KiB. A long label takes nearly all of that.
        let label = String(repeating: "x", count: 130_000)
        let outcome = try stores.work.shell(
            "trap '' XFSZ; ulimit -f 256; $coffer rotate stores --key raw+file:old --new-key raw+file:new "
                + "--receipts receipts --label \(label) --label \(String(repeating: "y", count: 760)) 2>&1")
        #expect(outcome.status == 1, "\(outcome.output)")
        #expect(outcome.output.contains("receipts: File too large"))
        #expect(try outcomes("run").count == 1 && outcomes("begun").isEmpty)
        for name in stores.names { #expect(try stores.generation(of: name) == 1) }
        #expect(try stores.verify().status == 0)
    }

    @Test("Receipts are asked for in a way that makes sense, or it is a 64")
    func usage() throws {
        let keys = ["--key", "raw+file:old", "--new-key", "raw+file:new"]
        for arguments in [
            ["--resume"], ["--label", "a"], ["--receipts", "stores"],
        ] {
            let outcome = try CofferProcess.run(["rotate", "stores"] + keys + arguments, in: stores.work.folder)
            #expect([64, 1].contains(outcome.status), "\(arguments)")
        }
        try FileManager.default.createSymbolicLink(
            at: stores.work.folder.appending(path: "receipts"),
            withDestinationURL: stores.work.folder.appending(path: "old"))
        #expect(try stores.rotate().status == 1)
        #expect(try stores.work.coffer("receipts", "verify", "nothing").status == 1)
        #expect(try stores.work.coffer("receipts").status == 64)
        for name in stores.names { #expect(try stores.generation(of: name) == 1) }
    }
}
