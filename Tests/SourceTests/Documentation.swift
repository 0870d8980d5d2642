/// What the pages of this project refer to: other pages, files, and the tests that keep a promise.
enum Documentation {
    // MARK: Links

    /// The links of `page` that lead nowhere in the repository. Links to the web are left alone.
    ///
    /// `exists` tells whether there is a file or folder at a path from the root, `pages` finds the text of another page.
    static func brokenLinks(
        in page: SourceFile, pages: [String: SourceFile], exists: (String) -> Bool
    ) -> [Finding] {
        links(in: page).compactMap { line, target in
            guard !target.contains(":") else { return nil }
            let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let path = parts[0].isEmpty ? page.path : resolved(parts[0], from: page.folder)
            guard let path, exists(path) else { return Finding(page, line: line, "no file at \(target)") }
            if parts.count == 2, let other = pages[path], !anchors(in: other).contains(parts[1]) {
                return Finding(page, line: line, "no heading for \(target)")
            }
            return nil
        }
    }

    /// The targets of `[text](target)` in `page`, code left out.
    private static func links(in page: SourceFile) -> [(line: Int, target: String)] {
        prose(of: page).flatMap { number, text in
            text.matches(of: /\]\(([^)\s]+)\)/).map { (number, String($0.1)) }
        }
    }

    /// `path` as seen from the root, or nil when it leaves the repository.
    private static func resolved(_ path: String, from folder: String) -> String? {
        var parts = folder.split(separator: "/")
        for part in path.split(separator: "/") where part != "." {
            if part != ".." {
                parts.append(part)
            } else if parts.popLast() == nil {
                return nil
            }
        }
        return parts.joined(separator: "/")
    }

    /// The anchors of the headings in `page`: lower case, blanks as hyphens, other punctuation left out.
    private static func anchors(in page: SourceFile) -> Set<String> {
        Set(
            prose(of: page, keepingCodeSpans: true).filter { $0.text.hasPrefix("#") }.map { _, text in
                String(
                    text.drop { $0 == "#" }.drop { $0 == " " }.lowercased().compactMap { character -> Character? in
                        if character == " " { return "-" }
                        return character.isLetter || character.isNumber || "-_".contains(character) ? character : nil
                    })
            })
    }

    /// The lines of `page` outside fenced code, without what stands between backticks.
    private static func prose(of page: SourceFile, keepingCodeSpans: Bool = false) -> [(number: Int, text: String)] {
        var isInCode = false
        return page.numberedLines.compactMap { number, line -> (number: Int, text: String)? in
            if line.trimmingPrefix(while: \.isWhitespace).hasPrefix("```") {
                isInCode.toggle()
                return nil
            }
            if isInCode { return nil }
            return (number, keepingCodeSpans ? String(line) : String(line).replacing(/`[^`]*`/, with: ""))
        }
    }

    // MARK: Promises

    /// The entries of the lists of `page` that name no test and do not say that there is none.
    static func entriesWithoutTest(in page: SourceFile) -> [Finding] {
        var entries: [(line: Int, text: String)] = []
        for (number, line) in page.numberedLines {
            if line.hasPrefix("- ") {
                entries.append((number, String(line)))
            } else if line.hasPrefix("  "), let last = entries.popLast() {
                entries.append((last.line, last.text + " " + line.trimmingPrefix(while: \.isWhitespace)))
            }
        }
        return entries.filter { entry in
            Promise.namedTests(in: entry.text).isEmpty
                && !entry.text.lowercased().contains("*not covered")
        }.map { Finding(page, line: $0.line, "no test") }
    }
}
