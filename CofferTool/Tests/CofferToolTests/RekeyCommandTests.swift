import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite("Re-encrypting a store: rekey, encrypt and decrypt")
struct RekeyCommandTests {
    let work: Workspace
    private let marker = "marker-3f1e-in-the-store"

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        try work.write(Data(1..<33), to: "new-key")
        try work.write(Data(2..<34), to: "third-key")
        try work.write(Data("\(marker) in a file".utf8), to: "file")
        try work.coffer("put", "people.coffer", "a", "--key", "raw+file:key", input: #"{"text":"\#(marker)"}"#)
        try work.coffer("attach", "people.coffer", "a", "file", "file", "--key", "raw+file:key")
    }

    private func run(_ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments, in: work.folder, .init(environment: ["P": "password123456"]))
    }

    /// What the store holds, as `get` and `cat` show it; nil where the key doesn't open it.
    private func contents(_ source: String?) throws -> String? {
        let key = source.map { ["--key", $0] } ?? []
        let get = try CofferProcess.run(["get", "people.coffer", "a"] + key, in: work.folder)
        let cat = try CofferProcess.run(["cat", "people.coffer", "a", "file"] + key, in: work.folder)
        #expect(get.status == cat.status)
        #expect([0, 12].contains(get.status))
        return get.status == 0 ? get.output + cat.output : nil
    }

    /// Whether `text` stands readable in some file of the store.
    private func isReadable(_ text: String) throws -> Bool {
        try work.contents(of: "people.coffer").values.contains { $0.range(of: Data(text.utf8)) != nil }
    }

    @Test("The command rekey puts everything under the new key, and the old one is a 401")
    func rekey() throws {
        let before = try #require(try contents("raw+file:key"))
        let old = try work.contents(of: "people.coffer")
        let outcome = try run(
            "rekey", "people.coffer", "--key", "raw+file:key", "--new-key", "raw+file:new-key", "--json")
        #expect(outcome.status == 0)
        #expect(outcome.errors.isEmpty)
        let result = try #require(try outcome.objects.first)
        #expect(result["type"] as? String == "rekey")
        #expect(result["oldGeneration"] as? Int == 1)
        #expect(result["generation"] as? Int == 2)
        #expect(result["documents"] as? Int == 1)
        #expect(result["attachments"] as? Int == 1)
        #expect(result["oldKeyOpens"] as? Bool == false)
        #expect(result["oldGenerationIsGone"] as? Bool == true)
        #expect((result["keys"] as? [Any])?.count == 1)
        #expect((result["endedKeys"] as? [Any])?.count == 1)
        #expect(try contents("raw+file:new-key") == before)
        #expect(try contents("raw+file:key") == nil)
        // No file is what it was, and none is left over.
        let new = try work.contents(of: "people.coffer")
        #expect(Set(new.keys).intersection(old.keys) == ["MANIFEST"])
        #expect(new["MANIFEST"] != old["MANIFEST"])
        #expect(new.count == old.count)

        let text = try run(
            "rekey", "people.coffer", "--key", "raw+file:new-key", "--new-key", "env:P", "--keyed-names")
        #expect(text.status == 0)
        #expect(text.output.contains("generation   2 to 3\n"))
        #expect(text.output.contains("refused (401)\n"))
        #expect(try contents("raw+file:new-key") == nil)
        let names = try work.contents(of: "people.coffer").keys.filter { $0.hasSuffix(".blob") }
        #expect(names.map { $0.split(separator: "/").last?.count } == [64 + 5])
    }

    @Test("The command rekey keeps other keys that are given, drops them only when told, and changes nothing otherwise")
    func otherKeys() throws {
        try work.coffer(
            "key", "add", "people.coffer", "--key", "raw+file:key", "--new-key", "raw+file:third-key", "--label",
            "third")
        let before = try work.contents(of: "people.coffer")
        let refused = try run(
            "rekey", "people.coffer", "--key", "raw+file:key", "--new-key", "raw+file:new-key", "--json")
        #expect(refused.status == 1)
        #expect(try refused.failure["code"] as? String == "otherKeysExist")
        #expect(try refused.failure["status"] as? Int == 409)
        let wrong = try run(
            "rekey", "people.coffer", "--key", "raw+file:key", "--new-key", "raw+file:new-key", "--keep-key", "env:P")
        #expect(wrong.status == 12)
        let decrypted = try run("decrypt", "people.coffer", "--key", "raw+file:key", "--yes-remove-encryption")
        #expect(decrypted.status == 1)
        #expect(try work.contents(of: "people.coffer") == before)

        let kept = try run(
            "rekey", "people.coffer", "--key", "raw+file:key", "--new-key", "raw+file:new-key", "--keep-key",
            "raw+file:third-key", "--json")
        #expect(kept.status == 0)
        #expect((try kept.objects.first?["keys"] as? [Any])?.count == 2)
        for key in ["raw+file:new-key", "raw+file:third-key"] { #expect(try contents(key) != nil) }
        #expect(try contents("raw+file:key") == nil)

        let dropped = try run(
            "rekey", "people.coffer", "--key", "raw+file:third-key", "--new-key", "raw+file:key", "--drop-other-keys",
            "--json")
        #expect(dropped.status == 0)
        #expect((try dropped.objects.first?["endedKeys"] as? [Any])?.count == 2)
        for key in ["raw+file:new-key", "raw+file:third-key"] { #expect(try contents(key) == nil) }
        #expect(try contents("raw+file:key") != nil)
    }

    @Test("The command decrypt makes a store readable only when told so in full, and encrypt leaves nothing readable")
    func decryptAndEncrypt() throws {
        let before = try #require(try contents("raw+file:key"))
        #expect(try !isReadable(marker))
        let files = try work.contents(of: "people.coffer")
        #expect(try run("decrypt", "people.coffer", "--key", "raw+file:key").status == 64)
        #expect(try work.contents(of: "people.coffer") == files)

        #expect(
            try run("decrypt", "people.coffer", "--key", "raw+file:key", "--yes-remove-encryption").status == 0)
        #expect(try contents(nil) == before)
        #expect(try contents("raw+file:key") == nil)
        #expect(try isReadable(marker))
        #expect(try run("decrypt", "people.coffer", "--yes-remove-encryption").status == 12)
        #expect(try run("rekey", "people.coffer", "--new-key", "env:P").status == 12)

        let encrypted = try run("encrypt", "people.coffer", "--new-key", "raw+file:new-key")
        #expect(encrypted.status == 0)
        #expect(try contents("raw+file:new-key") == before)
        #expect(try contents(nil) == nil)
        #expect(try !isReadable(marker))
        let again = try run("encrypt", "people.coffer", "--key", "raw+file:new-key", "--new-key", "env:P", "--json")
        #expect(again.status == 1)
        #expect(try again.failure["status"] as? Int == 400)
        #expect(try contents("raw+file:new-key") == before)
    }

    @Test("Damage ends a rekey with 26, with its name, and the store stays as it was")
    func damaged() throws {
        let blob = try #require(try work.contents(of: "people.coffer").keys.first { $0.hasSuffix(".blob") })
        try work.write(Data(count: 100), to: "people.coffer/" + blob)
        let before = try work.contents(of: "people.coffer")
        let outcome = try run(
            "rekey", "people.coffer", "--key", "raw+file:key", "--new-key", "raw+file:new-key", "--json")
        #expect(outcome.status == 26)
        #expect(try outcome.failure["message"].map { "\($0)" }?.contains("attachment file of document a") == true)
        #expect(try work.contents(of: "people.coffer") == before)
        #expect(try run("get", "people.coffer", "a", "--key", "raw+file:key").status == 0)
    }

    @Test("The command rekey reports progress where it is asked to, and on a terminal")
    func progress() throws {
        let asked = try run(
            "rekey", "people.coffer", "--key", "raw+file:key", "--new-key", "raw+file:new-key", "--progress", "--json")
        #expect(asked.status == 0)
        let first = try asked.errors.split(separator: "\n").first.map {
            try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
        #expect(first??["type"] as? String == "progress")
        #expect(first??["phase"] as? String == "attachments")
        #expect(first??["totalItems"] as? Int == 1)
        let text = try run("rekey", "people.coffer", "--key", "raw+file:new-key", "--new-key", "env:P", "--progress")
        #expect(text.errors.hasPrefix("coffer: attachments: 0 of 0 MiB\n"))
    }
}

@Suite("A change of the encryption key that is cut short", .serialized)
struct CancelledRekeyTests {
    let work: Workspace

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        try work.write(Data(1..<33), to: "new-key")
        // No document has a second revision: a compaction that runs by itself would change the store too.
        for number in 0..<8 {
            try work.write(Data("\(number)".utf8) + Data(count: 20_000_000), to: "large")
            let attached = try work.coffer(
                "attach", "people.coffer", "\(number)", "large", "large", "--key", "raw+file:key")
            #expect(attached.status == 0)
        }
    }

    private static let rekey = ["rekey", "people.coffer", "--key", "raw+file:key", "--new-key", "raw+file:new-key"]

    @Test("A change of the encryption key that ^C ends leaves the store as it was, and ends with 130")
    func interrupted() throws {
        let before = try work.contents(of: "people.coffer")
        let terminal = try FakeTerminal()
        let outcome = try CofferProcess.run(
            Self.rekey, in: work.folder, .init(terminal: terminal, showsErrorsOnTerminal: true)
        ) { _ in
            try terminal.wait(for: "attachments: ")
            terminal.type("\u{3}")
        }
        #expect(outcome.status == 130)
        #expect(outcome.output.isEmpty)
        #expect(try work.contents(of: "people.coffer") == before)
        #expect(try work.coffer("ls", "people.coffer", "--key", "raw+file:new-key").status == 12)
    }

    @Test(
        "A key change that a signal ends, at any time, ends with 130 and the old key, or was over and has the new one")
    func signalled() throws {
        var (old, new) = ("new-key", "key")
        let start = ContinuousClock.now
        #expect(try CofferProcess.run(Self.rekey, in: work.folder).status == 0)
        let whole = ContinuousClock.now - start
        var counts = [Int32: Int]()
        // On a busy machine one run may take many times as long as another, so that no signal comes in the middle.
        for round in 0..<600 where round < 12 || counts[130] == nil {
            let signal = [SIGINT, SIGTERM, SIGHUP][round % 3]
            let outcome = try CofferProcess.run(
                ["rekey", "people.coffer", "--key", "raw+file:\(old)", "--new-key", "raw+file:\(new)", "--json"],
                in: work.folder
            ) { process in
                usleep(UInt32(whole / .microseconds(1)) * UInt32(round % 12 + 1) / 12)
                kill(process, signal)
            }
            counts[outcome.status, default: 0] += 1
            // A signal that came before the command took notice of any ended it as it ends every process, without a word.
            #expect([0, 130, 128 + signal].contains(outcome.status))
            if outcome.status == 130 && !outcome.errors.isEmpty {
                #expect(try outcome.failure["status"] as? Int == 499)
            }
            if outcome.status == 0 { swap(&old, &new) }
            #expect(try work.coffer("ls", "people.coffer", "--key", "raw+file:\(old)").lines.count == 8)
            #expect(try work.coffer("ls", "people.coffer", "--key", "raw+file:\(new)").status == 12)
            let names = try FileManager.default.contentsOfDirectory(
                atPath: work.folder.appending(path: "people.coffer").path(percentEncoded: false))
            #expect(names.count == 2)
        }
        print("signals while a key changes: ended with \(counts)")
        #expect(counts[130] ?? 0 > 0)
    }
}
