import Foundation
import Testing

@Suite("Backups of keys: key backup and restore")
struct KeyBackupCommandTests {
    let work: Workspace
    private let key = ["--key", "raw+file:key"]

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        try work.write(Data(32..<64), to: "other")
        try work.write(#"{"n":1}"#, to: "body")
        #expect(try run("put", "people.coffer", "a", "body").status == 0)
        #expect(try run("key", "backup", "people.coffer", "backup").status == 0)
    }

    private func run(_ arguments: String..., key: String? = "key") throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments + (key.map { ["--key", "raw+file:\($0)"] } ?? []), in: work.folder)
    }

    private func path(_ name: String) -> String { work.folder.appending(path: name).path(percentEncoded: false) }

    @Test("A backup of keys is MANIFEST, for its owner alone, over no other file, and is proven where a key is given")
    func backup() throws {
        #expect(try work.contents(of: ".")["backup"] == work.contents(of: "people.coffer")["MANIFEST"])
        let mode = try FileManager.default.attributesOfItem(atPath: path("backup"))[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(try run("key", "backup", "people.coffer", "backup").status == 1)
        #expect(try run("key", "backup", "people.coffer", "second", key: "other").status == 12)
        #expect(!FileManager.default.fileExists(atPath: path("second")))
        let unproven = try run("key", "backup", "people.coffer", "second", "--json", key: nil)
        #expect(unproven.status == 0)
        #expect(try unproven.objects.first?["proven"] as? Bool == false)
        #expect(try run("key", "backup", "none.coffer", "third").status == 10)
        #expect(try run("key", "backup", "people.coffer", "none/third").status == 1)
        #expect(!FileManager.default.fileExists(atPath: path("third")))
    }

    @Test("A backup of keys makes the store open again when MANIFEST is lost or damaged, or a key was replaced")
    func restore() throws {
        #expect(try run("key", "replace", "people.coffer", "--new-key", "raw+file:other").status == 0)
        #expect(try run("get", "people.coffer", "a").status == 12)
        let restored = try run("key", "restore", "people.coffer", "backup", "--json")
        #expect(restored.status == 0)
        #expect(try restored.objects.first?["type"] as? String == "store")
        #expect(try restored.objects.first?["sequence"] as? Int == 3)
        #expect((try restored.objects.first?["keys"] as? [Any])?.count == 1)
        #expect(try run("get", "people.coffer", "a").status == 0)
        #expect(try run("get", "people.coffer", "a", key: "other").status == 12)
        try work.write("damaged", to: "people.coffer/MANIFEST")
        #expect(try run("get", "people.coffer", "a").status == 26)
        #expect(try run("key", "restore", "people.coffer", "backup").output.hasSuffix("  32 bytes\n"))
        #expect(try run("get", "people.coffer", "a").status == 0)
        #expect(unlink(path("people.coffer/MANIFEST")) == 0)
        #expect(try run("get", "people.coffer", "a").status == 10)
        #expect(try run("key", "restore", "people.coffer", "backup").status == 0)
        #expect(try run("get", "people.coffer", "a").status == 0)
    }

    @Test("The command key restore refuses a backup that is foreign, not whole or opens nothing, and changes no byte")
    func refused() throws {
        let before = try work.contents(of: "people.coffer")
        #expect(try run("create", "second.coffer").status == 0)
        #expect(try run("key", "backup", "second.coffer", "foreign").status == 0)
        let foreign = try run("key", "restore", "people.coffer", "foreign", "--json")
        #expect(foreign.status == 1)
        #expect(try foreign.failure["status"] as? Int == 409)
        let wrong = try run("key", "restore", "people.coffer", "backup", "--json", key: "other")
        #expect(wrong.status == 12)
        #expect((try wrong.failure["message"] as? String)?.hasPrefix("backup: ") == true)
        #expect(try run("key", "restore", "people.coffer", "backup", key: nil).status == 12)
        for text in ["", "no backup", String(repeating: "x", count: 1024)] {
            try work.write(text, to: "broken")
            #expect(try run("key", "restore", "people.coffer", "broken").status == 26)
        }
        #expect(try run("key", "restore", "people.coffer", "none").status == 1)
        #expect(try run("key", "restore", "none.coffer", "backup").status == 10)
        #expect(try run("key", "restore", "people.coffer", "backup", key: "none").status == 13)
        #expect(try work.contents(of: "people.coffer") == before)
        #expect(try run("rekey", "people.coffer", "--new-key", "raw+file:key").status == 0)
        let early = try run("key", "restore", "people.coffer", "backup", "--json")
        #expect(early.status == 1)
        #expect(try early.failure["code"] as? String == "conflict")
        #expect(try run("get", "people.coffer", "a").status == 0)
    }
}
