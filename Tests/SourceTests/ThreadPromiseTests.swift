import Testing

@Suite("What the compiler is told about threads")
struct ThreadPromiseTests {
    @Test("Each place where the compiler takes our word for thread safety names a test that exists")
    func named() throws {
        let declarations = TestDeclaration.all(in: try Repository.files(in: "Tests", withExtensions: ["swift"]))
        let tests = Set(declarations.compactMap(\.sentence))
        let files = try Repository.files(in: "Sources", withExtensions: ["swift"])
        let findings = files.flatMap { ThreadPromises.withoutTest(in: $0, existing: tests) }
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test(
        "A place without a test, or with one that doesn't exist, is found",
        arguments: [
            ("", 1), ("    /// It is locked (test: \"it is\n    /// locked\").\n", 0),
            ("    /// It is locked (test: \"it is not\").\n", 1),
        ])
    func control(comment: String, count: Int) {
        for code in ["    private nonisolated(" + "unsafe) var state = 0", "final class A: @unchecked " + "Sendable {"]
        {
            let file = SourceFile(path: "Sources/Coffer/A.swift", text: comment + code + "\n")
            #expect(ThreadPromises.withoutTest(in: file, existing: ["it is locked"]).count == count)
        }
    }
}
