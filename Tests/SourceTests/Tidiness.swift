import Foundation

/// What this project's sources do not hold, whatever they are about.
///
/// The words looked for are put together here, so that this file does not hold them itself.
enum Tidiness {
    /// Every complaint about `file`, which may be of any kind: source, manifest, script or page.
    static func findings(in file: SourceFile) -> [Finding] {
        // Samples in the library's documentation may print.
        let isLibrary = file.path.hasPrefix("Sources/") && !file.path.hasSuffix(".md")
        var findings: [Finding] = []
        let suspected = rules.filter { $0.applies(isLibrary) && $0.mayMatch(file.text) }
        for (number, line) in suspected.isEmpty ? [] : file.numberedLines {
            for rule in suspected where rule.matches(line) {
                findings.append(Finding(file, line: number, rule.complaint))
            }
        }
        let isGenerated = file.numberedLines.first?.text.hasSuffix("not edited by hand.") ?? false
        if file.path.hasSuffix(".swift"), !isGenerated, file.numberedLines.count > maximumLineCount + 1 {
            findings.append(Finding(file, "over \(maximumLineCount) lines: two concepts in one file?"))
        }
        return findings
    }

    /// A source file longer than this holds more than one concept.
    static let maximumLineCount = 500

    private struct Rule {
        let words: [String]
        let complaint: String
        var inLibraryOnly = false
        var asEndOfName = false
        /// Longer texts that contain one of the words and are allowed.
        var exceptions: [String] = []

        func applies(_ isLibrary: Bool) -> Bool { isLibrary || !inLibraryOnly }

        /// Whether a line of `text` may match: a quick look that spares most files the slow one.
        func mayMatch(_ text: String) -> Bool { words.contains { text.range(of: $0, options: .literal) != nil } }

        /// Whether `line` holds one of the words; as the end of a longer name only where ``asEndOfName`` says so.
        func matches(_ line: Substring) -> Bool {
            let line = exceptions.reduce(line) { $0.replacing($1, with: "") }
            return words.contains { word in
                line.ranges(of: word).contains { range in
                    asEndOfName || line[..<range.lowerBound].last.map { $0.isLetter || $0 == "_" } != true
                }
            }
        }
    }

    private static let rules = [
        Rule(words: ["TO" + "DO", "FIX" + "ME", "XX" + "X"], complaint: "work left for later"),
        Rule(words: ["try" + "!"], complaint: "an error that would end the process"),
        Rule(
            words: ["unsafe" + "Flags"], complaint: "a flag that keeps other packages from depending on this one",
            // What the manifest sets for scripts/test alone.
            exceptions: ["unsafe" + "Flags(swift)", "unsafe" + "Flags(c)"]),
        Rule(
            words: ["work", "root", "home", "opt", "Users"].map { "/" + $0 + "/" },
            complaint: "a path of one machine", asEndOfName: true),
        Rule(words: ["print" + "(", "dump" + "(", "debug" + "Print("], complaint: "output", inLibraryOnly: true),
        Rule(
            words: [
                "#if DEBUG", "@_spi" + "(", "@test" + "able", "forTest" + "ing", "ForTest" + "s", "isTest" + "ing",
            ],
            complaint: "a hook that only tests use", inLibraryOnly: true, asEndOfName: true,
            // What CofferKeys has for the tool, which is another package.
            exceptions: ["@_spi" + "(Tool)"]),
    ]
}
