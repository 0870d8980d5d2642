/// The samples of README and of the guides, which are parts of the programs in `Snippets/`.
enum Snippets {
    /// The parts of `file`, by name: the lines between `// snippet.NAME` and `// snippet.end`, moved to the left.
    static func parts(of file: SourceFile) -> [String: String] {
        var parts: [String: String] = [:]
        var open: (name: String, lines: [Substring])?
        for (_, line) in file.numberedLines {
            guard let name = line.wholeMatch(of: /\s*\/\/ snippet\.([\w-]+)/)?.1 else {
                open?.lines.append(line)
                continue
            }
            if let (name, lines) = open { parts[name] = unindented(lines) }
            open = name == "end" ? nil : (String(name), [])
        }
        return parts
    }

    /// The blocks of Swift in `page`. One that is no part of a program says so behind the language: `swift not-compiled`.
    static func samples(in page: SourceFile) -> [(line: Int, text: String)] {
        var samples: [(Int, String)] = []
        var open: (line: Int, lines: [Substring])?
        for (number, line) in page.numberedLines {
            if let (start, lines) = open {
                guard line == "```" else {
                    open?.lines.append(line)
                    continue
                }
                samples.append((start, unindented(lines)))
                open = nil
            } else if line == "```swift" {
                open = (number, [])
            }
        }
        return samples
    }

    /// The samples of `page` that are not, character for character, a part of one of `programs`.
    static func strangers(in page: SourceFile, programs: [SourceFile]) -> [Finding] {
        let known = Set(programs.flatMap { parts(of: $0).values })
        return samples(in: page).filter { !known.contains($0.text) }.map {
            Finding(page, line: $0.line, "a sample that is no part of a program in Snippets")
        }
    }

    /// `lines` without the indentation that all of them have.
    private static func unindented(_ lines: [Substring]) -> String {
        let indentation = lines.filter { !$0.isEmpty }.map { $0.prefix { $0 == " " }.count }.min() ?? 0
        return lines.map { $0.dropFirst(indentation) }.joined(separator: "\n")
    }
}
