import Testing

@Suite("The samples are programs")
struct SnippetTests {
    @Test(
        "Every sample of Swift is a part of a program that is compiled and run",
        arguments: [
            ("README.md", 4), ("docs/GUIDE.md", 21), ("docs/SYNC.md", 5), ("docs/FIRST-HOUR.md", 1),
            ("Sources/Coffer/Coffer.docc/Coffer.md", 1),
            ("Sources/CofferTesting/CofferTesting.docc/CofferTesting.md", 1),
            ("Sources/CofferSync/CofferSync.docc/CofferSync.md", 1),
        ])
    func samples(path: String, leastCount: Int) throws {
        let page = try #require(Repository.files(withExtensions: ["md"]).first { $0.path == path })
        #expect(Snippets.samples(in: page).count >= leastCount)
        let programs = try Repository.files(in: "Snippets", withExtensions: ["swift"])
        let findings = Snippets.strangers(in: page, programs: programs)
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test("A sample that differs in a character is found, and indentation that all lines have is no difference")
    func control() {
        let program = SourceFile(
            path: "Snippets/A.swift",
            text: """
                func a() {
                    // snippet.one
                    if b {
                        c()
                    }

                    // snippet.two
                    d()
                    // snippet.end
                }
                """)
        #expect(Snippets.parts(of: program) == ["one": "if b {\n    c()\n}\n", "two": "d()"])
        let page = SourceFile(
            path: "README.md",
            text: """
                ```swift
                d()
                ```
                ```swift not-compiled
                x()
                ```
                ```swift
                    d()
                ```
                ```swift
                d( )
                ```
                """)
        #expect(Snippets.strangers(in: page, programs: [program]).map(\.place) == ["README.md:10"])
    }
}
