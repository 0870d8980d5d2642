import Testing

/// What `scripts/mutants` breaks is what docs/PROMISES.md promises.
@Suite("Mutants and promises")
struct MutantTests {
    /// Promises that no change to the source can break and a test of the packages notice, by their first words.
    private static let withoutMutant = [
        "In a process with another SQLite":
            "programs that link two libraries are built and run by scripts/two-sqlites alone"
    ]

    /// Promises for which nobody has written a change yet, by their first words.
    private static let withoutMutantYet: [String] = []

    private static func mutants() throws -> [(file: String, mutant: Mutant?)] {
        try Repository.files(in: "Tests/Mutants", withExtensions: ["patch"]).map { ($0.path, Mutant($0)) }
    }

    private static func declarations() throws -> [TestDeclaration] {
        TestDeclaration.all(in: try Repository.files(withExtensions: ["swift"]))
    }

    private static func promises() throws -> [Promise] {
        let page = try #require(Repository.files(withExtensions: ["md"]).first { $0.path == "docs/PROMISES.md" })
        return Promise.all(in: page)
    }

    @Test("Every patch of Tests/Mutants says which promise it breaks, and names tests that exist")
    func patches() throws {
        let declarations = try Self.declarations()
        for (file, mutant) in try Self.mutants() {
            guard let mutant else {
                Issue.record("\(file) says no promise or no tests")
                continue
            }
            // One name beside others could be wrong for long; what is grouped is looked at as a whole.
            let names = mutant.tests.contains("(") ? [mutant.tests[...]] : mutant.tests.split(separator: "|")
            for name in names {
                let filter = try Regex(String(name))
                let isThere = declarations.contains { $0.isOfTool == mutant.isOfTool && $0.id.contains(filter) }
                #expect(isThere, "\(file): no test is called \(name)")
            }
        }
    }

    @Test("For every promise of docs/PROMISES.md there is a change of the source that one of its tests notices")
    func table() throws {
        let declarations = try Self.declarations()
        let mutants = try Self.mutants().compactMap(\.mutant)
        let promises = try Self.promises().map { ($0, $0.tests.flatMap { $0.declarations(in: declarations) }) }
        #expect(promises.count > 90 && promises.flatMap(\.0.tests).count > 200)
        let named = promises.flatMap(\.1)
        let noticing = Set(try mutants.flatMap { try $0.tests(among: named).map(\.id) })
        var expected = Set(Self.withoutMutant.keys).union(Self.withoutMutantYet)
        for (promise, tests) in promises {
            let isBroken = tests.contains { noticing.contains($0.id) }
            let listed = expected.first { promise.text.hasPrefix($0) }
            if let listed { expected.remove(listed) }
            #expect(isBroken == (listed == nil), "\(promise.text.prefix(100))")
        }
        #expect(expected == [], "no promises begin so")
    }

    @Test("A promise is read with its suites, a test with its labels, and a patch with its fields")
    func control() throws {
        let page = SourceFile(
            path: "docs/PROMISES.md",
            text: """
                - Not one (test: A `b`).
                ## Promises
                - One
                  is kept (tests: A suite
                  `one`, `two (again)`, Other `three`). And (test: `four`)
                text
                  (test: Not `this`)
                ## Not promised
                - Two (test: A `b`)
                """)
        let promises = Promise.all(in: page)
        #expect(
            promises.map { $0.tests.map(\.description) } == [
                ["A suite `one`", "A suite `two (again)`", "Other `three`", "`four`"]
            ])
        // Put together, so that these are no tests of this file.
        let test = "@" + "Test"
        let file = SourceFile(
            path: "CofferTool/Tests/ToolTests/Other.swift",
            text: """
                @Suite("A suite", .serialized)
                struct FirstTests {
                    struct Inner { func helper() {} }
                    \(test)("one", arguments: [(1, 2)])
                    func one(_ first: [Int: (a: Int, b: Int)], second other: Int) {}
                }
                @Suite(.serialized) struct SecondTests {
                    \(test)(
                        "two (again)"
                    )
                    func two() throws {}
                }
                extension FirstTests {
                    \(test) func three() async throws {}
                }
                \(test)("three") func four(
                    a: Int
                ) {}
                """)
        let tests = TestDeclaration.all(in: [file])
        #expect(
            tests.map(\.id) == [
                "ToolTests.FirstTests/one(_:second:)", "ToolTests.SecondTests/two()", "ToolTests.FirstTests/three()",
                "ToolTests.four(a:)",
            ])
        #expect(tests.map(\.suite) == ["A suite", nil, "A suite", nil])
        #expect(tests.allSatisfy { $0.isOfTool })
        #expect(
            promises[0].tests.map { $0.declarations(in: tests).map(\.function) } == [
                ["one(_:second:)"], [], ["four(a:)"], [],
            ])
        let patch = SourceFile(
            path: "Tests/Mutants/some-change.patch",
            text: "Promise: It is kept.\nTests: FirstTests/one|four\nPackage: tool\n\ndiff --git\nTests: none\n")
        let mutant = try #require(Mutant(patch))
        #expect(mutant.promise == "It is kept." && mutant.name == "some-change")
        #expect(try mutant.tests(among: tests).map(\.function) == ["one(_:second:)", "four(a:)"])
        #expect(Mutant(SourceFile(path: "Tests/Mutants/a.patch", text: "Promise: It is kept.\n\ndiff\n")) == nil)
    }
}
