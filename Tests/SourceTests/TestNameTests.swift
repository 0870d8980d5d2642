import Testing

/// What a failure says is a test's name alone: it has to be a claim that nobody needs the suite to understand.
@Suite("Names of tests")
struct TestNameTests {
    /// How a sentence without its subject begins. It has been cut from behind the suite's name.
    private static let cutOff: Set<Substring> = [
        "Is", "Are", "Has", "Have", "May", "Can", "Can't", "Does", "Do", "Don't", "Must", "Never", "That", "Which",
        "Whose", "They",
        "It", "Takes", "Keeps", "Leaves", "Finds", "Goes", "Says", "Ends", "Gives", "Brings", "Refuses", "Removes",
        "And", "Or",
    ]

    /// What is wrong with the names of tests and suites.
    private static func findings(in tests: [TestDeclaration]) -> [String] {
        var findings: [String] = []
        var places: [String: Set<String>] = [:]
        for test in tests {
            if let suite = test.suite {
                places["suite \(suite)", default: []].insert("\(test.target).\(test.type ?? "")")
            } else {
                findings.append("\(test.id): the suite has no name")
            }
            guard let sentence = test.sentence, let first = sentence.first else {
                findings.append("\(test.id): the test has no name")
                continue
            }
            places[sentence, default: []].insert(test.id)
            if first.isLowercase || Self.cutOff.contains(sentence.prefix { $0 != " " }) {
                findings.append("\(test.id): no whole sentence: \(sentence)")
            }
        }
        return findings + places.filter { $0.value.count > 1 }.map { "\($0.key): \($0.value.sorted())" }.sorted()
    }

    @Test("Every suite has a name, and every test a whole sentence, which no other has, in the library and the tool")
    func names() throws {
        let tests = TestDeclaration.all(in: try Repository.files(withExtensions: ["swift"]))
        #expect(tests.count { $0.isOfTool } > 300 && tests.count { !$0.isOfTool } > 1500)
        let findings = Self.findings(in: tests)
        #expect(findings.isEmpty, "\(findings.joined(separator: "\n"))")
    }

    @Test("Missing names, names that are cut off, and names that two have are found in tests and suites")
    func control() {
        let test = "@" + "Test"
        func findings(_ text: String, _ path: String = "Tests/ATests/A.swift") -> [String] {
            let other = "@Suite(\"Another\") struct BTests {\n    \(test)(\"Another is there\") func b() {}\n}\n"
            let files = [
                SourceFile(path: path, text: text), SourceFile(path: "CofferTool/Tests/BTests/B.swift", text: other),
            ]
            return Self.findings(in: TestDeclaration.all(in: files))
        }
        func suite(_ name: String, _ sentence: String) -> String {
            "@Suite\(name) struct ATests {\n    \(test)\(sentence) func a() {}\n}\n"
        }
        #expect(findings(suite("(\"One\")", "(\"One is there\")")) == [])
        #expect(findings(suite("(\"One\")", "(\"32 of them are there\")")) == [])
        #expect(findings(suite("", "(\"One is there\")")) == ["ATests.ATests/a(): the suite has no name"])
        #expect(findings(suite("(\"One\")", "")) == ["ATests.ATests/a(): the test has no name"])
        for sentence in ["is there", "one is there", "Is there"] {
            #expect(
                findings(suite("(\"One\")", "(\"\(sentence)\")"))
                    == ["ATests.ATests/a(): no whole sentence: \(sentence)"])
        }
        let tests = ["ATests.ATests/a()", "BTests.BTests/b()"]
        #expect(findings(suite("(\"One\")", "(\"Another is there\")")) == ["Another is there: \(tests)"])
        #expect(
            findings(suite("(\"Another\")", "(\"One is there\")"))
                == ["suite Another: \(["ATests.ATests", "BTests.BTests"])"])
    }
}
