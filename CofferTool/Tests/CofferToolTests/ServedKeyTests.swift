import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite("serve with a key for each store", .timeLimit(.minutes(30)))
struct ServedKeyTests {
    private let work: Workspace

    /// A key service: a password of the store's name, unless it fails for that store.
    private let keys = ["--key", "cmd:./service", "--key-for-each-store"]

    init() throws {
        work = try Workspace()
        try work.write(
            """
            #!/bin/sh
            name=${COFFER_STORE_PATH##*/}
            echo "$COFFER_KEY_PURPOSE $name ${COFFER_STORE_UUID:-none}" >> calls
            test -e "fails-$name" && exit 3
            echo "a password of $name"

            """, to: "service")
        #expect(chmod(work.folder.path + "/service", 0o700) == 0)
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "served"), withIntermediateDirectories: true)
        for name in ["one", "two", "three"] {
            try work.write("a password of \(name).coffer", to: "key-\(name)")
            let made = try work.coffer("create", "served/\(name).coffer", "--key", "file:key-\(name)")
            try #require(made.status == 0, "\(made.errors)")
        }
    }

    private var calls: [String] {
        get throws {
            guard FileManager.default.fileExists(atPath: work.folder.path + "/calls") else { return [] }
            return try String(contentsOf: work.folder.appending(path: "calls"), encoding: .utf8)
                .split(separator: "\n").map(String.init)
        }
    }

    private func status(_ arguments: String) throws -> String {
        try work.shell("curl -s --max-time 300 -o answer -w '%{http_code}' \(arguments)").output
    }

    @Test("The command is asked for the key of each store when a client first asks for the store, and told which it is")
    func each() throws {
        try work.write("", to: "fails-three.coffer")
        let outcome = try serving(work, keys + ["--no-authentication"]) { url in
            let asked = try calls
            #expect(asked == [])
            for name in ["one", "two", "one"] {
                #expect(try status("\(url)/\(name)") == "200")
            }
            #expect(try status("\(url)/missing") == "404")
            #expect(try status("\(url)/three") == "503")
            #expect(try status("-X PUT \(url)/made") == "201")
            try FileManager.default.removeItem(at: work.folder.appending(path: "fails-three.coffer"))
            #expect(try status("\(url)/three") == "200")
        }
        let asked = try calls
        let uuid = try #require(
            try work.coffer("info", "served/one.coffer", "--json").objects.first?["uuid"] as? String)
        #expect(asked.first == "old one.coffer \(uuid)")
        #expect(asked.filter { $0.contains(" one.coffer ") }.count == 1)
        #expect(asked.filter { $0.contains(" three.coffer ") }.count == 2)
        #expect(asked.last { $0.contains(" made.coffer ") } == "new made.coffer none")
        #expect(!asked.contains { $0.contains("missing") })
        #expect(outcome.errors.contains("the key of three can't be had"), "\(outcome.errors)")
        try work.write("a password of made.coffer", to: "key-made")
        #expect(try work.coffer("ls", "served/made.coffer", "--key", "file:key-made").status == 0)
    }

    @Test("Without --key-for-each-store the command for serve's key runs once, and its environment names no store")
    func once() throws {
        let outcome = try serving(work, ["--key", "cmd:./service", "--no-authentication"]) { url in
            let asked = try calls
            #expect(asked == ["old  none"])
            let answer = try status("\(url)/one")
            #expect(answer == "500")
        }
        #expect(outcome.status == 0)
    }

    @Test("--key-for-each-store is refused without a command that could tell the stores apart")
    func refused() throws {
        for arguments in [["--key", "file:key-one"], ["--unencrypted"]] {
            let outcome = try CofferProcess.run(
                ["serve", "served", "--no-authentication", "--key-for-each-store"] + arguments, in: work.folder)
            #expect(outcome.status == 64)
            #expect(outcome.errors.contains("--key-for-each-store"), "\(outcome.errors)")
        }
    }
}
