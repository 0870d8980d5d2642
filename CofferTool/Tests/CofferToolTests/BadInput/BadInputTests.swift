import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Every command against everything that may be wrong, each with the status that scripts rely on.
@Suite("Bad input", .timeLimit(.minutes(30)))
struct BadInputTests {
    @Test("Every command there is has its place in the matrix of bad input")
    func complete() throws {
        let work = try Workspace()
        let dump = try work.coffer("--experimental-dump-help")
        let root = try #require(try JSONSerialization.jsonObject(with: dump.outputBytes) as? [String: Any])
        func names(_ command: Any?, _ path: [String]) -> [String] {
            guard let command = command as? [String: Any] else { return [] }
            let parts = (command["subcommands"] as? [[String: Any]] ?? []).filter {
                // Hidden is what only the command itself calls.
                $0["commandName"] as? String != "help" && $0["shouldDisplay"] as? Bool != false
            }
            if parts.isEmpty { return [path.joined(separator: " ")] }
            return parts.flatMap { names($0, path + [$0["commandName"] as? String ?? ""]) }
        }
        let all = names(root["command"], [])
        #expect(all.count > 30)
        #expect(Set(all) == Set(MatrixCommand.all.map(\.name)))
    }

    // MARK: What is expected of a failure

    /// Runs a command line that must fail with this status, and sees that nothing is changed or made, and nothing said that must
    /// not be.
    ///
    /// - Parameter forms: whether its result is JSON: in both ways of writing.
    private func expectFailure(
        _ folder: MatrixFolder, _ command: MatrixCommand, _ line: [String], _ status: Int32, code: String? = nil,
        environment: [String: String] = [:], secrets: [String] = [], forms: [Bool] = [false, true],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let before = try folder.work.contents(of: ".")
        for isJSON in forms {
            let outcome = try folder.run(command, isJSON ? line + ["--json"] : line, environment: environment)
            let shown = "\(line): \(outcome.status) \(outcome.errors.prefix(300))"
            #expect(outcome.status == status, "\(shown)", sourceLocation: sourceLocation)
            if isJSON {
                let failure = try #require(try? outcome.failure, "\(shown)", sourceLocation: sourceLocation)
                #expect(failure["type"] as? String == "error", "\(shown)", sourceLocation: sourceLocation)
                #expect(failure["exit"] as? Int == Int(status), "\(shown)", sourceLocation: sourceLocation)
                #expect(
                    (failure["status"] as? Int).map { $0 >= 400 } == true, "\(shown)", sourceLocation: sourceLocation)
                let found = failure["code"] as? String
                #expect(found != nil && (code == nil || found == code), "\(shown)", sourceLocation: sourceLocation)
            } else {
                let last = outcome.errors.split(separator: "\n").last { !$0.hasPrefix("coffer: hint: ") }
                #expect(last?.hasPrefix("coffer: error: ") == true, "\(shown)", sourceLocation: sourceLocation)
            }
            for secret in secrets + [MatrixFolder.canary, "000102030405060708090a0b"] {
                #expect(!outcome.errors.contains(secret), "\(shown)", sourceLocation: sourceLocation)
            }
        }
        #expect(try folder.work.contents(of: ".") == before, "\(line)", sourceLocation: sourceLocation)
    }

    // MARK: Stores

    @Test("Each command works where nothing is bad, and shows no secret", arguments: MatrixCommand.all)
    func control(command: MatrixCommand) throws {
        for options in [[], ["--json"]] {
            let folder = try MatrixFolder()
            let outcome = try folder.run(command, command.line(slot: folder.slot) + options)
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(!outcome.errors.contains(MatrixFolder.canary))
        }
    }

    @Test("A store that is missing, or that is none, is exit status 10", arguments: MatrixCommand.ofStores)
    func noStore(command: MatrixCommand) throws {
        let folder = try MatrixFolder()
        try FileManager.default.createDirectory(
            at: folder.work.folder.appending(path: "folder.coffer"), withIntermediateDirectories: false)
        try folder.work.write("no store", to: "file.coffer")
        // Of many stores the list says which; a folder that is named is gone through.
        let missing = command.isOfManyStores ? "list-of-missing" : "missing.coffer"
        try folder.work.write("missing.coffer\n", to: "list-of-missing")
        for subject in [missing, "folder.coffer", "file.coffer"] {
            if command.isOfManyStores && subject == "file.coffer" { continue }
            if command.name == "leakcheck" && subject != "missing.coffer" { continue }
            try expectFailure(folder, command, command.line(subject: subject, slot: folder.slot), 10)
        }
    }

    @Test(
        "A store that another process has open is exit status 11, and is left alone", arguments: MatrixCommand.ofStores)
    func busy(command: MatrixCommand) throws {
        let folder = try MatrixFolder()
        let stores = command.isOfManyStores ? ["stores/a.coffer", "stores/b.coffer"] : [command.subject ?? ""]
        let descriptors = stores.map { open(folder.work.folder.appending(path: $0).path, O_RDONLY | O_CLOEXEC) }
        defer { descriptors.forEach { close($0) } }
        // As who writes has it, and as who reads has it, which stops nobody who reads too.
        for lock in [LOCK_EX, LOCK_SH] {
            for descriptor in descriptors { try #require(flock(descriptor, lock | LOCK_NB) == 0) }
            let isStopped = !command.ignoresLock && (lock == LOCK_EX || command.writes)
            if isStopped && !["info", "key backup", "backup", "index update"].contains(command.name) {
                try expectFailure(folder, command, command.line(slot: folder.slot), 11, code: "busy")
            } else {
                let outcome = try folder.run(command, command.line(slot: folder.slot))
                #expect([0, 11].contains(outcome.status), "\(lock): \(outcome.errors)")
                try folder.removeProducts(of: command)
            }
        }
    }

    // MARK: Keys

    @Test("A wrong key is exit status 12, and so is no key", arguments: MatrixCommand.ofStores)
    func wrongKey(command: MatrixCommand) throws {
        let folder = try MatrixFolder()
        let none = command.line(key: .some(nil), slot: folder.slot)
        if command.withoutKey == 0 {
            #expect(try folder.run(command, none).status == 0)
            try folder.removeProducts(of: command)
        } else if command.name == "rotate" {
            try expectFailure(folder, command, none, 64)
        } else {
            try expectFailure(folder, command, none, 12, code: "keyRequired")
        }
        guard command.key != nil else { return }
        try expectFailure(
            folder, command, command.line(key: "raw+file:wrong-key", slot: folder.slot), 12, code: "wrongKey")
        // A password is half a second of work.
        try expectFailure(
            folder, command, command.line(key: "file:secret", slot: folder.slot), 12, code: "wrongKey",
            secrets: [MatrixFolder.secret], forms: [true])
    }

    @Test("A key that can't be had, or is none, is exit status 13 and never 12", arguments: MatrixCommand.all)
    func keyUnavailable(command: MatrixCommand) throws {
        let folder = try MatrixFolder()
        let sources = [
            "env:NOT_SET", "file:missing", "cmd:false", "cmd:exit 12", "raw+file:short-key", "hex+file:secret", "fd:97",
            "hex+env:SECRET",
        ]
        for (number, source) in sources.enumerated() {
            let environment = ["SECRET": MatrixFolder.secret]
            if command.key != nil {
                try expectFailure(
                    folder, command, command.line(key: source, slot: folder.slot), 13, environment: environment,
                    secrets: [MatrixFolder.secret], forms: [number % 2 == 0])
            }
            if command.newKey != nil && ["env:NOT_SET", "cmd:exit 12", "raw+file:short-key"].contains(source) {
                try expectFailure(
                    folder, command, command.line(newKey: source, slot: folder.slot), 13, environment: environment)
            }
        }
        // A line end of Windows is one.
        guard command.key != nil else { return }
        let outcome = try folder.run(command, command.line(key: "hex+file:crlf-key", slot: folder.slot))
        #expect(outcome.status == 0, "\(outcome.errors)")
    }

    @Test("A folder of stores with a foreign file in it is rotated, and the file left alone")
    func foreignFile() throws {
        let folder = try MatrixFolder()
        let command = try #require(MatrixCommand.all.first { $0.name == "rotate" })
        let outcome = try folder.run(command, command.line(slot: folder.slot) + ["--json"])
        #expect(outcome.status == 0)
        #expect(try folder.work.contents(of: "stores")["notes.txt"] == Data("nothing".utf8))
        // One that is called like a store, and is none, is a failure of its own.
        let mixed = try MatrixFolder()
        try mixed.work.write("no store", to: "stores/aa.coffer")
        let line = command.line(slot: mixed.slot) + ["--keep-going", "--json"]
        let second = try mixed.run(command, line)
        #expect(second.status == 3)
        #expect(try second.objects.count { $0["type"] as? String == "receipt" } == 3, "\(second.output)")
        #expect(try mixed.work.contents(of: "stores")["aa.coffer"] == Data("no store".utf8))
    }
}
