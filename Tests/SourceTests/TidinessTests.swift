import Testing

@Suite("The sources are tidy")
struct TidinessTests {
    @Test("No file holds what sources here do not hold")
    func sources() throws {
        let files = try Repository.files(withExtensions: ["swift", "c", "h", "modulemap", "md", "py", "sh", ""])
        #expect(files.contains { $0.path == "Package.swift" })
        #expect(files.contains { $0.path == "scripts/test" })
        #expect(files.contains { $0.path == "Tests/SourceTests/Tidiness.swift" })
        let findings = files.flatMap(Tidiness.findings)
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test(
        "An untidy line is found wherever it stands",
        arguments: [
            "// TO" + "DO: later", "let a = 1  // FIX" + "ME", "/// XX" + "X", "let a = try" + "! make()",
            "swiftSettings: [.unsafe" + "Flags([\"-O\"])]", "let path = \"/ro" + "ot/x\"", "see /wo" + "rk/notes",
        ],
        ["Sources/Coffer/A.swift", "Tests/CofferTests/A.swift", "CofferTool/Sources/CofferTool/A.swift", "scripts/a"])
    func control(line: String, path: String) {
        let findings = Tidiness.findings(in: SourceFile(path: path, text: "\n\n" + line + "\n"))
        #expect(findings.map(\.place) == [path + ":3"])
    }

    @Test(
        "Output and hooks for tests are found in the library, and left alone elsewhere",
        arguments: [
            "print" + "(key)", "    Swift.debug" + "Print(key)", "#if DEBUG" + "",
            "@_spi" + "(Internals) public var a: Int",
            "@test" + "able import CofferVault", "static var isTest" + "ing = false", "func keyForTest" + "s() {",
        ])
    func libraryControl(line: String) {
        #expect(Tidiness.findings(in: SourceFile(path: "Sources/Coffer/A.swift", text: line)).count == 1)
        #expect(Tidiness.findings(in: SourceFile(path: "CofferTool/Sources/A.swift", text: line)).isEmpty)
    }

    @Test("A word that only ends in one of those looked for is not found")
    func negativeControl() {
        let text = "blueprint" + "(a)\nlet fingerprint" + "(of: key)\nlet retry" + "! = 1\n$HOME/homework/a\n"
        #expect(Tidiness.findings(in: SourceFile(path: "Sources/Coffer/A.swift", text: text)).isEmpty)
    }

    @Test("A file is too long from its 501st line on, unless a script has made it", arguments: [(500, 0), (501, 1)])
    func length(lineCount: Int, findingCount: Int) {
        let generated = "/// Made by scripts/a: not edited by hand." + String(repeating: "\n", count: lineCount)
        #expect(Tidiness.findings(in: SourceFile(path: "Tests/A.swift", text: generated)).isEmpty)
        let text = String(repeating: "\n", count: lineCount)
        #expect(Tidiness.findings(in: SourceFile(path: "Tests/A.swift", text: text)).count == findingCount)
    }
}
