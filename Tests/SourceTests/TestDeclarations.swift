/// A test as the source declares it.
struct TestDeclaration {
    /// The target that the test is in: the folder after `Tests`.
    let target: String
    /// Whether the test is one of the command's.
    let isOfTool: Bool
    /// The name of the file without its ending.
    let fileName: String
    /// The type that the test is in, or nil where it is in none.
    let type: String?
    /// What the suite calls itself, if it does.
    let suite: String?
    /// Name and labels: `refused(key:)`.
    let function: String
    /// The sentence after `@Test(`, if there is one.
    let sentence: String?

    /// What `swift test --filter` compares: `CofferTests.DamageTests/journal(isEncrypted:)`.
    var id: String { "\(target).\(type.map { $0 + "/" } ?? "")\(function)" }
}

extension TestDeclaration {
    /// The tests of `files`. What is not below a folder `Tests` has none.
    static func all(in files: [SourceFile]) -> [TestDeclaration] {
        let sources = files.compactMap { file in file.testTarget.map { (file, $0) } }
        // Where a suite's tests stand in an extension, its sentence stands elsewhere.
        var suites: [String: String] = [:]
        for (file, target) in sources {
            for (type, sentence) in suiteSentences(in: file) { suites["\(target).\(type)"] = sentence }
        }
        return sources.flatMap { file, target in
            tests(in: file).map { test in
                TestDeclaration(
                    target: target, isOfTool: file.path.hasPrefix("CofferTool/"), fileName: file.name, type: test.type,
                    suite: test.type.flatMap { suites["\(target).\($0)"] }, function: test.function,
                    sentence: test.sentence)
            }
        }
    }

    /// The sentences after `@Suite(`, with the types that they name.
    private static func suiteSentences(in file: SourceFile) -> [(type: String, sentence: String)] {
        var found: [(String, String)] = []
        var attribute: String?
        for (_, line) in file.numberedLines {
            if line.hasPrefix("@Suite") { attribute = "" }
            guard let text = attribute.map({ $0 + line + "\n" }) else { continue }
            attribute = text
            guard let type = outermostType(of: line) else { continue }
            if let sentence = text.prefixMatch(of: /@Suite\(\s*"((?:[^"\\]|\\.)*)"/)?.1 {
                found.append((type, unescaped(sentence)))
            }
            attribute = nil
        }
        return found
    }

    private static func tests(in file: SourceFile) -> [(type: String?, function: String, sentence: String?)] {
        var found: [(String?, String, String?)] = []
        var type: String?
        var attribute: String?
        for (_, line) in file.numberedLines {
            if line == "}" { type = nil }
            if let name = outermostType(of: line) { type = name }
            // Comments and texts may name the attribute.
            let isAttribute = line.drop(while: \.isWhitespace).hasPrefix("@")
            if attribute == nil, isAttribute, let start = line.firstRange(of: "@Test")?.lowerBound {
                attribute = String(line[start...])
            } else if let text = attribute {
                attribute = "\(text)\n\(line)"
            }
            guard let text = attribute, text.contains("func "), let function = function(in: text) else { continue }
            let sentence = text.prefixMatch(of: /@Test\(\s*"((?:[^"\\]|\\.)*)"/)?.1
            found.append((type, function, sentence.map(unescaped)))
            attribute = nil
        }
        return found
    }

    /// The type that a line declares or extends, unless it is within another one.
    private static func outermostType(of line: Substring) -> String? {
        guard let first = line.first, !first.isWhitespace, first != "/" else { return nil }
        return line.firstMatch(of: /\b(?:struct|class|actor|enum|extension) (\w+)/).map { String($0.1) }
    }

    /// Name and labels of the function in `text`, or nil while its parameters are not complete.
    private static func function(in text: String) -> String? {
        guard let head = text.firstMatch(of: /\bfunc (\w+)\(/) else { return nil }
        var (depth, parameters, current) = (1, [String](), "")
        for character in text[head.range.upperBound...] {
            if "([<{".contains(character) { depth += 1 }
            if ")]>}".contains(character) { depth -= 1 }
            if depth == 0 {
                parameters.append(current)
                let labels = parameters.compactMap { $0.firstMatch(of: /[\w_]+/).map { "\($0.0):" } }
                return "\(head.1)(\(labels.joined()))"
            }
            if character == ",", depth == 1 {
                parameters.append(current)
                current = ""
            } else {
                current.append(character)
            }
        }
        return nil
    }

    private static func unescaped(_ literal: Substring) -> String {
        String(literal).replacing("\\\"", with: "\"").replacing("\\\\", with: "\\")
    }
}

extension SourceFile {
    /// The file's name without its ending.
    fileprivate var name: String { String(path.split(separator: "/").last?.split(separator: ".").first ?? "") }

    /// The target of tests that the file belongs to: the folder after `Tests`.
    fileprivate var testTarget: String? {
        path.split(separator: "/").drop { $0 != "Tests" }.dropFirst().dropLast().first.map(String.init)
    }
}
