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

    @Test("Locks of the library and its tests are such as the thread sanitizer sees")
    func locks() throws {
        // A sample of the guide is an app's, which has no other.
        let files = try ["Sources", "Tests"].flatMap { try Repository.files(in: $0, withExtensions: ["swift"]) }
            .filter { !$0.path.hasPrefix("Tests/SourceTests/") && !$0.path.hasSuffix("/GuideSampleTests.swift") }
        let findings = files.flatMap { ThreadPromises.unseenLocks(in: $0) }
        #expect(findings.isEmpty, "\(findings)")
        let planted = SourceFile(
            path: "Sources/Coffer/A.swift", text: "// Mutex(0)\nlet a = Mutex(0)\nlet b: Mutex<Int>\n")
        #expect(ThreadPromises.unseenLocks(in: planted).count == 2)
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
