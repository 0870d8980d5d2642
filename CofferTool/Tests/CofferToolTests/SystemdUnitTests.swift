import Foundation
import Testing

/// The units in Examples/systemd.
@Suite("The units for systemd")
struct SystemdUnitTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../../Examples/systemd").standardizedFileURL

    private static let analyzer = ["/usr/bin/systemd-analyze", "/bin/systemd-analyze"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    private func text(_ name: String) throws -> String {
        try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
    }

    /// The words of the service's command line, with what systemd puts into them.
    private func commandLine(credentials: String) throws -> [String] {
        let lines = try text("coffer-rotate.service").replacing("\\\n", with: " ").split(separator: "\n")
        let environment = try #require(lines.first { $0.hasPrefix("Environment=") }).split(separator: "=")
        let start = try #require(lines.first { $0.hasPrefix("ExecStart=/usr/bin/coffer ") })
        let variable = "${\(environment[1])}"
        return start.dropFirst("ExecStart=/usr/bin/coffer ".count).split(separator: " ").map { word in
            String(word).replacing("%d", with: credentials).replacing(variable, with: String(environment[2]))
        }
    }

    @Test("The service's command rotates stores that are due, and writes receipts and metrics where the unit lets it")
    func commandWorks() throws {
        let work = try Workspace(inMemory: true)
        for (name, digit) in [("old-key", "a"), ("new-key", "b")] {
            try work.write(String(repeating: digit, count: 64) + "\n", to: "credentials/\(name)")
        }
        for folder in ["lib/stores/nested", "cache"] {
            try FileManager.default.createDirectory(
                at: work.folder.appending(path: folder), withIntermediateDirectories: true)
        }
        func run(_ age: String) throws -> CofferProcess.Outcome {
            let line = try commandLine(credentials: "credentials").map {
                $0.replacing("/var/lib/coffer", with: "lib").replacing("/var/cache/coffer", with: "cache")
            }
            #expect(line.contains("90d"))
            return try CofferProcess.run(
                line.map { $0 == "90d" ? age : $0 }, in: work.folder,
                .init(environment: ["CREDENTIALS_DIRECTORY": work.folder.appending(path: "credentials").path]))
        }
        // The first night, on which there is no store yet.
        let first = try run("90d")
        #expect(first.status == 0, "\(first.errors)")
        let made = try work.coffer("create", "lib/stores/nested/a.coffer", "--key", "hex+file:credentials/old-key")
        try #require(made.status == 0)
        #expect(try run("90d").objects.last?["notDue"] as? Int == 1)
        // A key that was made in this second is not older than no time.
        var outcome = try run("0d")
        let end = ContinuousClock.now + .seconds(60)
        while try outcome.objects.last?["notDue"] as? Int == 1, ContinuousClock.now < end { outcome = try run("0d") }
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(try outcome.objects.first?["outcome"] as? String == "rotated")
        #expect(try work.coffer("receipts", "verify", "lib/receipts-1.jsonl").status == 0)
        let metrics = try work.contents(of: "cache").mapValues { String(decoding: $0, as: UTF8.self) }
        #expect(metrics["coffer-rotate.prom"]?.contains("coffer_rotation_exit_status 0\n") == true)
        let opened = try work.coffer("ls", "lib/stores/nested/a.coffer", "--key", "hex+file:credentials/new-key")
        #expect(opened.status == 0)
    }

    @Test(
        "Systemd has nothing to say against the units, and calls the service safe",
        .enabled(if: analyzer != nil, "systemd-analyze is in Debian's package systemd"))
    func accepted() throws {
        let analyzer = try #require(Self.analyzer)
        let work = try Workspace()
        let command = CofferProcess.executable.path(percentEncoded: false)
        for name in ["coffer-rotate.service", "coffer-rotate.timer"] {
            try work.write(text(name).replacing("/usr/bin/coffer", with: command), to: name)
        }
        let verified = try work.shell("\(analyzer) verify --man=no ./coffer-rotate.service ./coffer-rotate.timer 2>&1")
        #expect(verified.status == 0 && verified.output.isEmpty, "\(verified.output)")
        // From 0 to 10, times ten, of 0: all that systemd can take away is taken away.
        let options = "--offline=true --threshold=10"
        let security = try work.shell(
            "\(analyzer) security \(options) ./coffer-rotate.service >out 2>&1; echo $?; tail -1 out")
        #expect(security.output.hasPrefix("0\n"), "\(security.output)")
    }
}
