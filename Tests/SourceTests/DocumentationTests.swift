import Testing

@Suite("The documentation says what is there")
struct DocumentationTests {
    @Test("every link leads to a file or a heading")
    func links() throws {
        let pages = try Repository.files(withExtensions: ["md"])
        let byPath = Dictionary(uniqueKeysWithValues: pages.map { ($0.path, $0) })
        let findings = pages.flatMap {
            Documentation.brokenLinks(in: $0, pages: byPath, exists: Repository.exists)
        }
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test("a link is followed from the folder of its page, and one that leads nowhere is found")
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

    @Test("the version that the tool says it has is the one that CHANGELOG begins with")
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

    @Test("every test that a page names exists", arguments: ["docs/PROMISES.md", "docs/PRIOR-FAILURES.md"])
    func promises(path: String) throws {
        let page = try page(path)
        let named = Documentation.namedTests(in: page)
        #expect(!named.isEmpty)
        let existing = Documentation.testNames(in: try Repository.files(withExtensions: ["swift"]))
        let missing = named.filter { !existing.contains($0) }
        #expect(missing.isEmpty)
    }

    @Test("every failure elsewhere names a test, or says that there is none")
    func failures() throws {
        #expect(Documentation.entriesWithoutTest(in: try page("docs/PRIOR-FAILURES.md")).isEmpty)
    }

    @Test("an entry without a test is found, however many lines it has")
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

    @Test("the tests of a promise are read from the page, line breaks and several names among them")
    func promiseControl() {
        let page = SourceFile(
            path: "docs/PROMISES.md",
            text:
                "A promise (test: `one is kept`). Another\n(tests: `two (again)\n  is kept`, `three`). `code` (not one)."
        )
        #expect(Documentation.namedTests(in: page) == ["one is kept", "two (again) is kept", "three"])
        let tests = SourceFile(
            path: "Tests/A.swift", text: "@Test(\n    \"one is kept\", arguments: [1])\n@Test(\"two\")")
        #expect(Documentation.testNames(in: [tests]) == ["one is kept", "two"])
    }
}
