import Foundation
import Testing

/// A change of the key ended with 0 while all that was there before stayed on the disk, for a name that is not UTF-8 or for
/// an immutable file; and from then on every command that writes failed with a 500 that said nothing.
@Suite("Old generations that stay after a change of the key")
struct OldGenerationCommandTests {
    let work: Workspace
    private let key = ["--key", "raw+file:key"]

    init() throws {
        work = try Workspace()
        try work.makeStore()
        try work.write(Data(1..<33), to: "new-key")
        try work.write("a letter that anybody may read", to: "letter")
        #expect(try work.coffer("create", "readable.coffer", "--unencrypted").status == 0)
        #expect(try work.coffer("attach", "readable.coffer", "a", "letter", "letter").status == 0)
        #expect(try run("attach", "people.coffer", "a", "letter", "letter").status == 0)
    }

    private func run(_ arguments: String..., key: String = "key") throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments + ["--key", "raw+file:\(key)"], in: work.folder)
    }

    private func generations(_ store: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: work.folder.path + "/" + store)
            .filter { $0.hasPrefix("g0") }.sorted()
    }

    /// Makes the content of a store immutable while `body` runs, which is given the folder of its generation.
    private func withImmutableContent(of store: String, _ body: (_ generation: String) throws -> Void) throws {
        let generation = "\(work.folder.path)/\(store)/\(try #require(try generations(store).first))"
        #expect(try work.shell("/usr/bin/chattr +i \(generation)/attachments/*.blob").status == 0)
        defer { _ = try? work.shell("/usr/bin/chattr -R -i '\(work.folder.path)'") }
        try body(generation)
    }

    @Test("Encrypting a store with names that are not UTF-8 ends with 0, and nothing of them is left")
    func names() throws {
        let line = "cd readable.coffer/g0* && touch \"$(printf 'x\\377')\" \"$(printf 'attachments/\\300\\200')\""
        #expect(try work.shell(line).status == 0)
        let outcome = try work.coffer("encrypt", "readable.coffer", "--new-key", "raw+file:key", "--json")
        #expect(outcome.status == 0)
        #expect(try outcome.objects.first?["oldGenerationIsGone"] as? Bool == true)
        #expect((try outcome.objects.first?["oldGenerations"] as? [Any])?.count == 0)
        #expect(try generations("readable.coffer").count == 1)
    }

    /// A decryption that was killed leaves a generation that can be read beside the encrypted store, and nothing said so.
    @Test("Info and check say what a killed decryption left, with its size and what removes it, and that does")
    func killedDecryption() throws {
        try work.write(String(repeating: "a letter that anybody may read ", count: 400_000), to: "large")
        #expect(try run("attach", "people.coffer", "b", "large", "large").status == 0)
        let killed = try CofferProcess.run(
            ["decrypt", "people.coffer", "--yes-remove-encryption", "--key", "raw+file:key"], in: work.folder
        ) { process in
            _ = try eventually { try generations("people.coffer").count > 1 || CofferProcess.hasEnded(process) }
            kill(process, SIGKILL)
        }
        #expect(killed.status == 128 + SIGKILL)
        let left = try #require(try generations("people.coffer").last)
        // However far it came, so that there is something to be found.
        try work.write("SQLite format 3\0 and all that was copied", to: "people.coffer/\(left)/db.sqlite3")
        let files = try work.contents(of: "people.coffer/\(left)").values.reduce(0) { $0 + $1.count }
        for command in [["info"], ["info", "--key", "raw+file:key"], ["check", "--key", "raw+file:key"]] {
            let line = [command[0], "people.coffer"] + command.dropFirst()
            let text = try CofferProcess.run(line, in: work.folder)
            #expect(text.status == 0)
            #expect(text.errors.contains("\(left): \(files) bytes, which may be readable without a key\n"))
            #expect(text.errors.contains("hint: the next command that writes removes it: coffer compact people.coffer"))
            let json = try CofferProcess.run(line + ["--json"], in: work.folder)
            let reported = try #require(try json.objects.last?["oldGenerations"] as? [[String: Any]])
            #expect(reported.map { $0["bytes"] as? Int } == [files])
            #expect(reported.map { $0["mayBeReadable"] as? Bool } == [true])
            #expect(try json.failure["code"] as? String == "oldGenerationLeft")
        }
        #expect(try run("compact", "people.coffer").status == 0)
        #expect(try generations("people.coffer").count == 1)
        for command in ["info", "check"] {
            let sound = try run(command, "people.coffer")
            #expect(sound.status == 0 && sound.errors.isEmpty)
        }
    }

    @Test("A store whose key another process is changing is not said to have an old generation")
    func changeUnderWay() throws {
        try work.write("being copied", to: "people.coffer/g0000000000000002-0123456789abcdef/db.sqlite3")
        let descriptor = open(work.folder.path + "/people.coffer", O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        #expect(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        let busy = try work.coffer("info", "people.coffer")
        #expect(busy.status == 0 && busy.errors.isEmpty, "\(busy.errors)")
        #expect(flock(descriptor, LOCK_UN) == 0)
        #expect(try work.coffer("info", "people.coffer").errors.contains("old generation"))
    }

    @Test(
        "Each command that opens a store for writing removes an old generation, and none that reads does",
        arguments: MatrixCommand.ofStores.filter { $0.subject == "people.coffer" || $0.subject == "plain.coffer" })
    func everyWriter(command: MatrixCommand) throws {
        let folder = try MatrixFolder()
        let old = "\(command.subject ?? "")/g0000000000000009-0123456789abcdef"
        try folder.work.write("SQLite format 3\0 of a decryption", to: old + "/db.sqlite3")
        let outcome = try folder.run(command, command.line(slot: folder.slot))
        #expect(outcome.status == 0, "\(outcome.errors)")
        let isGone = !FileManager.default.fileExists(atPath: folder.work.folder.appending(path: old).path)
        // Keys are restored without the store being opened: what is there may be all that is left of it.
        #expect(isGone == (command.writes && command.name != "key restore" || command.name == "backup"))
    }

    @Test(
        "Encrypting a store with an immutable file ends with 3 and says where it is, that it may be readable, and what to do",
        .enabled(if: Immutability.isAvailable, Immutability.reason), arguments: [true, false])
    func encrypt(isJSON: Bool) throws {
        try withImmutableContent(of: "readable.coffer") { old in
            let outcome = try CofferProcess.run(
                ["encrypt", "readable.coffer", "--new-key", "raw+file:key"] + (isJSON ? ["--json"] : []),
                in: work.folder)
            #expect(outcome.status == 3)
            if isJSON {
                let result = try #require(try outcome.objects.first)
                #expect(result["oldGenerationIsGone"] as? Bool == false)
                let left = try #require((result["oldGenerations"] as? [[String: Any]])?.first)
                #expect((left["path"] as? String).map { old.hasSuffix($0) || $0.hasSuffix(old) } == true)
                #expect(left["mayBeReadable"] as? Bool == true)
                #expect((left["detail"] as? String)?.contains("Operation not permitted") == true)
                #expect(try outcome.failure["exit"] as? Int == 3)
                #expect(try outcome.failure["code"] as? String == "oldGenerationLeft")
            } else {
                #expect(outcome.output.contains("generation   1 to 2\n"))
                #expect(outcome.errors.contains("coffer: error: readable.coffer: the key was changed, but an old gen"))
                #expect(outcome.errors.contains("may be readable without a key"))
                #expect(outcome.errors.contains(old.split(separator: "/").last ?? "none"))
                #expect(outcome.errors.contains("chattr -R -i"))
            }
            #expect(!FileManager.default.fileExists(atPath: old + "/db.sqlite3"))
            // Reading goes on, and writing says what to do.
            #expect(try run("get", "readable.coffer", "a").status == 0)
            try work.write("{}", to: "body")
            for _ in 0..<2 {
                let put = try run("put", "readable.coffer", "b", "body")
                #expect(put.status == 1)
                #expect(put.errors.contains("chattr -R -i"))
                #expect(put.errors.contains(old.split(separator: "/").last ?? "none"))
            }
        }
        #expect(try run("put", "readable.coffer", "b", "body").status == 0)
        #expect(try generations("readable.coffer").count == 1)
    }

    @Test(
        "Rekeying a store with an immutable file ends with 3, and the store goes on",
        .enabled(if: Immutability.isAvailable, Immutability.reason))
    func rekey() throws {
        try work.write("{}", to: "body")
        try withImmutableContent(of: "people.coffer") { old in
            let outcome = try run("rekey", "people.coffer", "--new-key", "raw+file:new-key")
            #expect(outcome.status == 3)
            #expect(outcome.errors.contains("can be read with its key alone"))
            #expect(outcome.errors.contains(old.split(separator: "/").last ?? "none"))
            #expect(try run("put", "people.coffer", "b", "body", key: "new-key").status == 0)
            #expect(try generations("people.coffer").count == 2)
            let decrypt = try run("decrypt", "people.coffer", "--yes-remove-encryption", key: "new-key")
            #expect(decrypt.status == 3)
            #expect(try work.coffer("put", "people.coffer", "c", "body").status == 0)
        }
        #expect(try work.coffer("put", "people.coffer", "d", "body").status == 0)
        #expect(try generations("people.coffer").count == 1)
    }

    @Test(
        "Rotating stores of which one has an immutable file ends with 3, each time until that is gone",
        .enabled(if: Immutability.isAvailable, Immutability.reason))
    func rotate() throws {
        #expect(try work.coffer("create", "other.coffer", "--key", "raw+file:key").status == 0)
        try work.write("people.coffer\nother.coffer\n", to: "list")
        func rotate(_ options: String...) throws -> CofferProcess.Outcome {
            try CofferProcess.run(
                ["rotate", "list", "--key", "raw+file:key", "--new-key", "raw+file:new-key"] + options, in: work.folder)
        }
        try withImmutableContent(of: "people.coffer") { _ in
            let first = try rotate("--json")
            #expect(first.status == 3)
            let receipts = try first.objects.filter { $0["type"] as? String == "receipt" }
            #expect(receipts.map { $0["outcome"] as? String } == ["rotated", "rotated"])
            #expect(receipts.map { ($0["oldGenerations"] as? [Any])?.count } == [1, 0])
            #expect(try first.objects.last?["oldGenerationsLeft"] as? Int == 1)
            let second = try rotate()
            #expect(second.status == 3)
            #expect(second.output.contains("2 rotated before, 1 with an old generation left"))
            #expect(second.errors.contains("coffer: error: people.coffer: the key was changed, but an old generation"))
        }
        #expect(try rotate().status == 0)
        #expect(try generations("people.coffer").count == 1)
    }
}

/// Whether this user can make files immutable where tests keep theirs.
enum Immutability {
    static let reason: Comment = "needs root, chattr and a file system with immutable files"

    static let isAvailable: Bool = {
        guard let work = try? Workspace() else { return false }
        return (try? work.shell("touch x && /usr/bin/chattr +i x && ! rm -f x; r=$?; /usr/bin/chattr -i x; exit $r"))?
            .status == 0
    }()
}
