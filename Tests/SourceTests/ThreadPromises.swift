/// What the compiler is told to take for safe from several threads: our word, which a test keeps.
enum ThreadPromises {
    /// The places in `file` that promise so without naming an existing test, as in `(test: "The process stops")` in the
    /// comment above or beside them.
    static func withoutTest(in file: SourceFile, existing tests: Set<String>) -> [Finding] {
        let lines = file.numberedLines.map { String($0.text) }
        return lines.indices.compactMap { index in
            let code = lines[index].trimmingPrefix(while: \.isWhitespace)
            guard !code.hasPrefix("//"), words.contains(where: code.contains) else { return nil }
            let comment = lines[max(0, index - 8)...min(lines.count - 1, index + 3)].compactMap { line -> Substring? in
                let line = line.trimmingPrefix(while: \.isWhitespace)
                return line.hasPrefix("//") ? line.drop { $0 == "/" }.drop { $0 == " " } : nil
            }.joined(separator: " ")
            let named = comment.matches(of: /\(test: "([^"]+)"\)/).map { String($0.1) }
            if named.contains(where: tests.contains) { return nil }
            return Finding(file, line: index + 1, "no test keeps what the compiler is told here")
        }
    }

    /// The places in `file` that use the standard library's mutex. Where threads wait for one the thread sanitizer doesn't see
    /// it, and now and then reports what it protects as a race.
    static func unseenLocks(in file: SourceFile) -> [Finding] {
        file.numberedLines.compactMap { line in
            let code = line.text.trimmingPrefix(while: \.isWhitespace)
            guard !code.hasPrefix("//"), code.contains(/\bMutex[<(]/) else { return nil }
            return Finding(file, line: line.number, "the thread sanitizer doesn't see this lock: use Lock")
        }
    }

    private static let words = ["@unchecked " + "Sendable", "nonisolated(" + "unsafe)"]
}
