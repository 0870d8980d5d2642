import Foundation
import Testing

@testable import CofferTool

@Suite("Metrics of a run")
struct MetricsTests {
    let work: Workspace
    private static let name = "m.prom"

    init() throws {
        work = try Workspace(inMemory: true)
        try work.write(Data(0..<32), to: "old")
        try work.write(Data(32..<64), to: "new")
        for name in ["a", "b", "c"] {
            try FileManager.default.createDirectory(
                at: work.folder.appending(path: "stores"), withIntermediateDirectories: true)
            try work.coffer("create", "stores/\(name).coffer", "--key", "raw+file:old")
        }
    }

    private func rotate(_ arguments: String..., key: String = "old") throws -> CofferProcess.Outcome {
        try CofferProcess.run(
            ["rotate", "stores", "--key", "raw+file:\(key)", "--new-key", "raw+file:new", "--metrics", Self.name]
                + arguments, in: work.folder)
    }

    private func metrics() throws -> [String: Double] {
        let file = work.folder.appending(path: Self.name)
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o644)
        let names = try FileManager.default.contentsOfDirectory(atPath: work.folder.path)
        #expect(names.allSatisfy { !$0.hasPrefix(".coffer-") })
        return try MetricsParser.samples(of: String(contentsOf: file, encoding: .utf8))
    }

    @Test("A rotation counts each store under its outcome, and says when it was and how it ended")
    func rotation() throws {
        let before = Date().timeIntervalSince1970
        #expect(try rotate("--max-stores", "2").status == 0)
        let first = try metrics()
        #expect(first[#"coffer_rotation_stores{outcome="rotated"}"#] == 2)
        #expect(first[#"coffer_rotation_stores{outcome="notTried"}"#] == 1)
        #expect(first["coffer_rotation_exit_status"] == 0)
        let start = try #require(first["coffer_rotation_start_timestamp_seconds"])
        let end = try #require(first["coffer_rotation_end_timestamp_seconds"])
        #expect(before <= start && start <= end && end <= Date().timeIntervalSince1970)
        #expect(try rotate().status == 0)
        let second = try metrics()
        #expect(second[#"coffer_rotation_stores{outcome="rotated"}"#] == 1)
        #expect(second[#"coffer_rotation_stores{outcome="alreadyRotated"}"#] == 2)
        #expect(second.filter { $0.key.hasPrefix("coffer_rotation_stores{") }.values.reduce(0, +) == 3)
    }

    @Test("Runs that fail, wholly or in part, write them, with the status that the command ends with")
    func failures() throws {
        #expect(try rotate("--keep-going", key: "new2").status == 13)
        #expect(try metrics()["coffer_rotation_exit_status"] == 13)
        #expect(try metrics()[#"coffer_rotation_stores{outcome="failed"}"#] == nil)
        try work.write("nothing", to: "stores/b.coffer/MANIFEST")
        #expect(try rotate("--keep-going").status == 3)
        #expect(try metrics()["coffer_rotation_exit_status"] == 3)
        #expect(try metrics()[#"coffer_rotation_stores{outcome="failed"}"#] == 1)
    }

    @Test("A run that is cancelled writes them")
    func cancelled() throws {
        for number in 0..<20 {
            try FileManager.default.copyItem(
                at: work.folder.appending(path: "stores/a.coffer"),
                to: work.folder.appending(path: "stores/d\(number).coffer"))
        }
        let output = work.folder.appending(path: "output").path
        let ended = try CofferProcess.run(
            ["rotate", "stores", "--metrics", Self.name, "--key", "raw+file:old", "--new-key", "raw+file:new"],
            in: work.folder, .init(outputPath: output),
            meanwhile: { process in
                _ = eventually { (try? String(contentsOfFile: output, encoding: .utf8))?.contains("a.coffer") == true }
                kill(process, SIGTERM)
            })
        #expect(ended.status == 130)
        let metrics = try metrics()
        #expect(metrics["coffer_rotation_exit_status"] == 130)
        #expect(metrics["coffer_rotation_cancelled"] == 1)
        #expect(try #require(metrics[#"coffer_rotation_stores{outcome="rotated"}"#]) >= 1)
        #expect(try #require(metrics[#"coffer_rotation_stores{outcome="notTried"}"#]) >= 1)
        #expect(metrics.filter { $0.key.hasPrefix("coffer_rotation_stores{") }.values.reduce(0, +) == 23)
    }

    @Test("An audit counts stores, what is wrong with them, and the age of the oldest key")
    func audit() throws {
        try work.coffer("create", "stores/plain.coffer", "--unencrypted")
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "stores/none.coffer"), withIntermediateDirectories: false)
        #expect(try work.coffer("audit", "stores", "--encrypted", "--metrics", Self.name).status == 3)
        let metrics = try metrics()
        #expect(metrics["coffer_audit_stores"] == 4)
        #expect(metrics["coffer_audit_encrypted_stores"] == 3)
        #expect(metrics["coffer_audit_unreadable_stores"] == 1)
        #expect(metrics[#"coffer_audit_violating_stores{violation="notEncrypted"}"#] == 1)
        #expect(metrics[#"coffer_audit_violating_stores{violation="tooOld"}"#] == 0)
        #expect((0..<600).contains(try #require(metrics["coffer_audit_oldest_data_key_age_seconds"])))
        #expect(metrics["coffer_audit_exit_status"] == 3)
    }

    @Test("Metrics hold neither paths nor keys")
    func noSecrets() throws {
        #expect(try rotate().status == 0)
        let text = try String(contentsOf: work.folder.appending(path: Self.name), encoding: .utf8)
        #expect(!text.contains("stores/") && !text.contains(".coffer"))
    }

    @Test("A file that is no metrics of an earlier run is never replaced, and nothing is done then")
    func otherFiles() throws {
        try work.write("precious", to: "file")
        try work.write("", to: "empty")
        try FileManager.default.createSymbolicLink(
            at: work.folder.appending(path: "link"), withDestinationURL: work.folder.appending(path: "file"))
        func status(_ file: String, _ more: String...) throws -> Int32 {
            try CofferProcess.run(
                ["rotate", "stores", "--key", "raw+file:old", "--new-key", "raw+file:new", "--metrics", file] + more,
                in: work.folder
            ).status
        }
        for file in ["file", "link", "stores", "/dev/null"] { #expect(try status(file) == 64, "\(file)") }
        #expect(try status("nowhere/m.prom") == 1)
        #expect(try status("m.prom", "--dry-run") == 0)
        #expect(!FileManager.default.fileExists(atPath: work.folder.appending(path: "m.prom").path))
        #expect(try status("m.prom", "--receipts", "m.prom") == 64)
        #expect(try work.coffer("get", "stores/a.coffer", "x", "--key", "raw+file:old").status == 1)
        #expect(try String(contentsOf: work.folder.appending(path: "file"), encoding: .utf8) == "precious")
        #expect(try status("empty") == 0)
        #expect(try status("empty") == 0)
    }

    /// It was a 1, as if nothing had been done.
    @Test("Metrics that can't be written at the end of a rotation that is done are a 3, and say so")
    func lostAtTheEnd() throws {
        let outcome = try work.coffer(
            "rotate", "stores", "--key", "raw+cmd:mkdir m.prom; cat old", "--new-key", "raw+file:new", "--metrics",
            Self.name, "--json")
        #expect(outcome.status == 3, "\(outcome.errors)")
        #expect(try outcome.objects.last?["rotated"] as? Int == 3)
        let message = try #require(try outcome.failure["message"] as? String)
        #expect(message.hasPrefix("the rotation is done, but its metrics were not written: m.prom: "))
    }

    @Test("Labels and help are escaped as the format says")
    func escaping() throws {
        var text = PrometheusText()
        text.addGauge("coffer_a", "a \\ b\nc", [(["x": "\"q\" \\ \n", "a": ""], 0.5)])
        #expect(
            text.text == """
                # HELP coffer_a a \\\\ b\\nc
                # TYPE coffer_a gauge
                coffer_a{a="",x="\\"q\\" \\\\ \\n"} 0.5

                """)
        _ = try MetricsParser.samples(of: text.text)
    }

    private static let promtool = ["/usr/bin/promtool", "/usr/local/bin/promtool"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    @Test(
        "Prometheus's own tool has nothing to say against them",
        .enabled(if: promtool != nil, "promtool is in Debian's package prometheus"))
    func acceptedByPrometheus() throws {
        #expect(try rotate().status == 0)
        #expect(try work.coffer("audit", "stores", "--metrics", "a.prom").status == 0)
        let tool = try #require(Self.promtool)
        for name in [Self.name, "a.prom"] {
            let (status, output) = try work.shell("\(tool) check metrics <\(name) 2>&1")
            #expect(status == 0 && output.isEmpty, "\(output)")
        }
    }
}

/// Reads Prometheus's text exposition format more strictly than Prometheus does, and by its rules for names.
enum MetricsParser {
    struct Malformed: Error { let line: Substring }

    /// The number of each metric with its labels, as the text has them.
    static func samples(of text: String) throws -> [String: Double] {
        guard text.hasSuffix("\n") else { throw Malformed(line: "no line end") }
        var samples: [String: Double] = [:]
        var current: (name: Substring, hasType: Bool)?
        var seen: Set<Substring> = []
        for line in text.dropLast().split(separator: "\n", omittingEmptySubsequences: false) {
            if let match = line.wholeMatch(of: /# HELP ([a-z][a-z0-9_]*) (?:[^\\]|\\\\|\\n)+/) {
                guard seen.insert(match.1).inserted, current?.hasType != false else { throw Malformed(line: line) }
                // A run's numbers are gauges, which end in no counter's suffix; units are base units.
                guard match.1.hasPrefix("coffer_"), !match.1.contains(/_(total|count|sum|bucket|ms|minutes|days)$/)
                else { throw Malformed(line: line) }
                current = (match.1, false)
            } else if let match = line.wholeMatch(of: /# TYPE ([a-z0-9_]+) gauge/) {
                guard current?.name == match.1, current?.hasType == false else { throw Malformed(line: line) }
                current?.hasType = true
            } else {
                let label = /[a-z_]+="(?:[^"\\]|\\["\\n])*"/
                let sample = /(?<name>[a-z0-9_]+)(?<labels>\{[^ ].*\})? (?<value>-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?)/
                guard let match = line.wholeMatch(of: sample), match.name == current?.name, current?.hasType == true,
                    let value = Double(match.value)
                else { throw Malformed(line: line) }
                var rest = (match.labels ?? "").dropFirst()
                while !rest.isEmpty {
                    guard let one = rest.prefixMatch(of: label) else { throw Malformed(line: line) }
                    rest = rest[one.range.upperBound...]
                    guard ["}", ","].contains(rest.first) else { throw Malformed(line: line) }
                    rest = rest.dropFirst()
                }
                let key = String(match.name + (match.labels ?? ""))
                guard samples.updateValue(value, forKey: key) == nil else { throw Malformed(line: line) }
            }
        }
        guard current?.hasType == true else { throw Malformed(line: "nothing") }
        return samples
    }
}
