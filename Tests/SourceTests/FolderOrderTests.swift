import Testing

@Suite("Folders of the library stand in one order, and SQL in one target")
struct FolderOrderTests {
    let files: [SourceFile]

    init() throws { files = try Repository.files(in: "Sources", withExtensions: ["swift"]) }

    @Test("No file names a type of a folder above its own")
    func order() {
        let findings = FolderOrder.ofCoffer.findings(in: files)
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test("Every folder of the order exists")
    func noStaleFolders() {
        let missing = FolderOrder.ofCoffer.folders.filter { !Repository.exists("Sources/Coffer/" + $0) }
        #expect(missing.isEmpty, "\(missing)")
    }

    @Test("A type of a folder above is found, wherever a line names it, but not in comments and texts")
    func orderControl() {
        let order = FolderOrder(target: "Sources/Coffer", folders: ["Lower", "Upper"])
        let upper = SourceFile(path: "Sources/Coffer/Upper/Roof.swift", text: "public final class Roof {}\n")
        func findings(_ text: String, in folder: String = "Lower") -> [String] {
            let file = SourceFile(path: "Sources/Coffer/\(folder)/File.swift", text: text)
            return order.findings(in: [upper, file]).map(\.place)
        }
        #expect(findings("let roof: Roof?\n") == ["Sources/Coffer/Lower/File.swift:1"])
        #expect(
            findings("struct Wall {\n    func build(_ roof: [Roof]) {}\n}") == ["Sources/Coffer/Lower/File.swift:2"])
        #expect(findings("// A Roof.\nlet text = \"a Roof\"\nlet roofing = 1").isEmpty)
        #expect(findings("let roof: Roof?\n", in: "Upper").isEmpty)
        #expect(findings("let roof: Roof?\n", in: "Beside") == ["Sources/Coffer/Beside/File.swift"])
    }

    @Test("The writer is extended only in its own folder")
    func writer() {
        let findings = OwnFolder.ofCoffer.flatMap { $0.findings(in: files) }
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test(
        "An extension of the writer in another folder is found",
        arguments: ["extension Writer {", "private extension Writer {", "extension Writer: Sendable {}"])
    func writerControl(text: String) {
        func findings(_ path: String, _ text: String) -> [String] {
            let file = SourceFile(path: path, text: "struct Rule {}\n" + text + "\n")
            return OwnFolder.ofCoffer.flatMap { $0.findings(in: [file]) }.map(\.place)
        }
        let path = "Sources/Coffer/Revisions/Rule.swift"
        #expect(findings(path, text) == [path + ":2"])
        #expect(findings("Sources/Coffer/Open/Writer.swift", text).isEmpty)
        let others = "extension WriterLock {}\n// extension Writer {}\nlet text = \"extension Writer\""
        #expect(findings(path, others).isEmpty)
    }

    /// The targets that may hold statements: what runs them, what knows the tables, and what reads another's.
    private static let withStatements: Set<String> = ["CofferSQLite", "CofferRecords", "CofferCouchbaseLite"]

    @Test("No SQL stands above the records")
    func statements() {
        let findings = files.filter { !Self.withStatements.contains($0.target) }.flatMap(Self.statements)
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test(
        "A statement is found in a text of one line, and of several",
        arguments: [
            "let sql = \"SELECT 1\"", "    UPDATE documents SET winner = ?2", "run(\"PRAGMA synchronous = FULL\")",
        ])
    func statementsControl(text: String) {
        #expect(!Self.statements(in: SourceFile(path: "Sources/Coffer/File.swift", text: text)).isEmpty)
    }

    private static func statements(in file: SourceFile) -> [Finding] {
        let statement =
            /(?:^\s*|")(?:SELECT |INSERT (?:OR \w+ )?INTO |UPDATE \w+ SET |DELETE FROM |PRAGMA |CREATE (?:TABLE|INDEX) |DROP TABLE |BEGIN\b|COMMIT\b|ROLLBACK\b|SAVEPOINT )/
        return file.numberedLines.compactMap { number, text in
            text.contains(statement)
                ? Finding(file, line: number, "this is SQL, which belongs into CofferRecords") : nil
        }
    }
}
