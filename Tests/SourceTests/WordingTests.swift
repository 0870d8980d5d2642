import Testing

@Suite("The project speaks plain English")
struct WordingTests {
    @Test("No message, comment or page has a phrase that makes a reader look twice")
    func sources() throws {
        let folders = [("Sources", ["swift", "md"]), ("CofferTool/Sources", ["swift", "md"]), ("docs", ["md"])]
        let readme = try Repository.files(withExtensions: ["md"]).filter { $0.path == "README.md" }
        let files = try readme + folders.flatMap { try Repository.files(in: $0, withExtensions: Set($1)) }
        #expect(files.contains { $0.path == "README.md" })
        #expect(files.contains { $0.path == "docs/ARCHITECTURE.md" })
        #expect(files.contains { $0.path == "CofferTool/Sources/CofferTool/CofferCommand.swift" })
        let findings = files.flatMap(Wording.findings)
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test(
        "Each such phrase is found, with its line, in comments, messages and pages",
        arguments: [
            "the index is made anew", "a value of yours", "the watcher is told", "its last sequence is none.",
            "the keys are none", ". Who waits leaves the line", "one lock: who has it writes", "open to who asks",
            "links are passed over", "passing over them", "where it shall be", "it is none the less damaged",
            "the revision that counts", "the row is another one's", "the value is no number",
            "the answer is no JSON", "a leaf is no deletion", "it is compacted by itself",
        ])
    func control(phrase: String) {
        for (path, line) in [
            ("Sources/Coffer/A.swift", "    /// It says: " + phrase), ("docs/A.md", "- It says: " + phrase),
            (
                "CofferTool/Sources/CofferTool/A.swift",
                "throw Failure(\"it says\(phrase.hasPrefix(".") ? "" : ": ")\(phrase)\")"
            ),
        ] {
            let findings = Wording.findings(in: SourceFile(path: path, text: "\n\n" + line + "\n"))
            #expect(findings.map(\.place) == [path + ":3"], "\(line)")
        }
    }

    @Test("A comment that begins with Who is found, and code, fenced and quoted text and a question are left alone")
    func borders() {
        let source = SourceFile(
            path: "Sources/Coffer/A.swift",
            text: "/// Who waits.\nlet anew = yours\n// Who may write: the owner.\nfunc shall() {}")
        #expect(Wording.findings(in: source).map(\.place) == ["Sources/Coffer/A.swift:1"])
        let page = SourceFile(
            path: "docs/A.md",
            text: "(test: `is told once\nand made anew`)\n\n```\nshall\n```\n## Who has a connection\n`anew` shall")
        #expect(Wording.findings(in: page).map(\.place) == ["docs/A.md:8"])
    }
}
