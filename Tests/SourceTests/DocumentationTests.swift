import Testing

@Suite("The documentation says what is there")
struct DocumentationTests {
    @Test("Every link leads to a file or a heading")
    func links() throws {
        let pages = try Repository.files(withExtensions: ["md"])
        let byPath = Dictionary(uniqueKeysWithValues: pages.map { ($0.path, $0) })
        let findings = pages.flatMap {
            Documentation.brokenLinks(in: $0, pages: byPath, exists: Repository.exists)
        }
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test("A link is followed from the folder of its page, and one that leads nowhere is found")
    func linkControl() {
        let page = SourceFile(
            path: "docs/FORMAT.md",
            text: """
                # The bytes, and `MANIFEST`
                [here](#the-bytes-and-manifest) [up](../README.md#start) [web](https://example.org/x) `[code](none)`
                [gone](GONE.md) [out](../../README.md)
                [no heading](../README.md#end)
                ```
                [in code](none.md)
                ```
                """)
        let readme = SourceFile(path: "README.md", text: "## Start\n")
        let findings = Documentation.brokenLinks(in: page, pages: [page.path: page, readme.path: readme]) {
            [page.path, readme.path].contains($0)
        }
        #expect(findings.map(\.place) == [3, 3, 4].map { "docs/FORMAT.md:\($0)" })
    }

    @Test("README has at most 200 lines, so that a newcomer reads it to the end")
    func readmeLength() throws {
        // The last line ends with a line break, after which an empty one is counted.
        #expect(try page("README.md").numberedLines.count <= 201)
    }

    @Test("The version that the tool says it has is the one that CHANGELOG begins with")
    func version() throws {
        let command = try #require(
            Repository.files(in: "CofferTool/Sources", withExtensions: ["swift"]).first {
                $0.path.hasSuffix("/CofferCommand.swift")
            })
        let said = try #require(command.text.firstMatch(of: /version: "(\d+\.\d+\.\d+)(-dev)?"/))
        let latest = try #require(page("CHANGELOG.md").text.firstMatch(of: /\n## (\d+\.\d+\.\d+)(, unreleased)?\n/))
        #expect(said.1 == latest.1)
        #expect((said.2 == nil) == (latest.2 == nil))
    }

    private func page(_ path: String) throws -> SourceFile {
        try #require(Repository.files(withExtensions: ["md"]).first { $0.path == path })
    }

    @Test(
        "Every test that a page names is in the suite that it names",
        arguments: ["docs/PROMISES.md", "docs/PRIOR-FAILURES.md", "docs/THREADS.md", "SECURITY.md"])
    func promises(path: String) throws {
        let declarations = TestDeclaration.all(in: try Repository.files(withExtensions: ["swift"]))
        let named = Promise.namedTests(in: try page(path).text)
        // SECURITY leads to the page of promises instead of naming tests of its own.
        #expect(!named.isEmpty || path == "SECURITY.md")
        #expect(named.filter { $0.declarations(in: declarations).isEmpty } == [])
    }

    @Test("Every failure elsewhere names a test, or says that there is none")
    func failures() throws {
        #expect(Documentation.entriesWithoutTest(in: try page("docs/PRIOR-FAILURES.md")).isEmpty)
    }

    @Test("An entry without a test is found, however many lines it has")
    func failureControl() {
        let page = SourceFile(
            path: "docs/PRIOR-FAILURES.md",
            text: """
                - One. (test: `it
                  is kept`.)
                - Two
                  (Somewhere.)
                - Three. *Not
                  covered yet*: why.
                """)
        #expect(Documentation.entriesWithoutTest(in: page).map(\.place) == ["docs/PRIOR-FAILURES.md:3"])
    }

    @Test("The tests of a promise are read from the page, line breaks and several names among them")
    func promiseControl() {
        let page = SourceFile(
            path: "docs/PROMISES.md",
            text:
                "A promise (test: A suite `one is kept`). Another\n(tests: `two (again)\n  is kept`, Other\n `three`). `code` (not one)."
        )
        #expect(
            Promise.namedTests(in: page.text).map(\.description) == [
                "A suite `one is kept`", "`two (again) is kept`", "Other `three`",
            ])
        let tests = TestDeclaration.all(in: [
            SourceFile(
                path: "Tests/ATests/A.swift",
                text: "@Suite(\"Other\") struct ATests {\n    @" + "Test(\"three\") func a() {}\n    @"
                    + "Test(\"one is kept\") func b() {}\n}\n")
        ])
        // The first is in another suite than the page says.
        #expect(Promise.namedTests(in: page.text).map { $0.declarations(in: tests).count } == [0, 0, 1])
    }
}
