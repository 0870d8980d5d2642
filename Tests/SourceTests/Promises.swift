/// A promise of docs/PROMISES.md: an entry of its lists, with the tests that it names.
struct Promise {
    let text: String
    let tests: [NamedTest]

    /// A test as a page names it: `A suite `its sentence``. A suite is named by its sentence, its type or its file.
    struct NamedTest: Hashable, CustomStringConvertible {
        let suite: String?
        let sentence: String

        var description: String { "\(suite.map { $0 + " " } ?? "")`\(sentence)`" }

        /// The tests of that name.
        func declarations(in tests: [TestDeclaration]) -> [TestDeclaration] {
            tests.filter { test in
                test.sentence == sentence && (suite == nil || [test.suite, test.type, test.fileName].contains(suite))
            }
        }
    }

    /// The entries under the heading `## Promises` of `page`.
    static func all(in page: SourceFile) -> [Promise] {
        var entries: [String] = []
        var (isInside, continues) = (false, false)
        for (_, line) in page.numberedLines {
            if line.hasPrefix("## ") { isInside = line == "## Promises" }
            guard isInside else { continue }
            if line.hasPrefix("- ") {
                entries.append(String(line.dropFirst(2)))
                continues = true
            } else if continues, line.hasPrefix("  ") {
                entries[entries.count - 1] += " " + line.trimmingPrefix(while: \.isWhitespace)
            } else {
                continues = false
            }
        }
        return entries.map { Promise(text: $0, tests: namedTests(in: $0)) }
    }

    /// The tests that an entry or a page names, as in "(tests: A suite `one`, `another`, Another suite `one`)".
    static func namedTests(in entry: String) -> [NamedTest] {
        var named: [NamedTest] = []
        for list in entry.matches(of: /\(tests?:\s+((?:`[^`]+`|[^)`])+)\)/) {
            var suite: String?
            // What stands between backticks is every second part.
            for (index, part) in list.1.split(separator: "`", omittingEmptySubsequences: false).enumerated() {
                let words = part.split(whereSeparator: \.isWhitespace).joined(separator: " ")
                if !index.isMultiple(of: 2) {
                    named.append(NamedTest(suite: suite, sentence: words))
                } else if case let name = words.drop(while: { ",; ".contains($0) }), !name.isEmpty {
                    suite = String(name)
                }
            }
        }
        return named
    }
}

/// A patch of Tests/Mutants: a change that breaks a promise, and the tests that notice.
struct Mutant {
    let name: String
    let promise: String
    let tests: String
    let isOfTool: Bool

    /// Nil where the patch does not say what it has to.
    init?(_ file: SourceFile) {
        var fields: [String: String] = [:]
        for (_, line) in file.numberedLines {
            if line.hasPrefix("diff ") { break }
            guard let field = line.wholeMatch(of: /([A-Z]\w*): *(.*)/), fields["\(field.1)"] == nil else { continue }
            fields["\(field.1)"] = "\(field.2)"
        }
        guard let promise = fields["Promise"], let tests = fields["Tests"], !promise.isEmpty, !tests.isEmpty else {
            return nil
        }
        name = String(file.path.split(separator: "/").last?.split(separator: ".").first ?? "")
        (self.promise, self.tests, isOfTool) = (promise, tests, fields["Package"] == "tool")
    }

    /// Those of `tests` that `scripts/mutants` runs for it.
    func tests(among tests: [TestDeclaration]) throws -> [TestDeclaration] {
        let filter = try Regex(self.tests)
        return tests.filter { $0.isOfTool == isOfTool && $0.id.contains(filter) }
    }
}
