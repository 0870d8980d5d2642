/// Turns of phrase that cost a reader whose first language is English a second look, and that were common here once.
///
/// They are looked for in comments, in texts between quotation marks, and in the prose of pages: not in code, and not in
/// what pages quote between backticks, such as names of tests.
enum Wording {
    /// Every such phrase in `file`, with its line and what to write instead.
    static func findings(in file: SourceFile) -> [Finding] {
        lines(of: file).flatMap { number, text in
            rules.filter { !text.matches(of: $0.pattern).isEmpty }.map {
                Finding(file, line: number, $0.complaint)
            }
        }
    }

    private struct Rule {
        let pattern: Regex<Substring>
        let complaint: String
    }

    // A comment's or sentence's beginning is part of some patterns, so lines are looked at with what begins them.
    private nonisolated(unsafe) static let rules = [
        Rule(pattern: /\banew\b/, complaint: "anew: again, or rebuilt, re-encrypted, starts over"),
        Rule(pattern: /\bof yours\b/, complaint: "of yours: your own"),
        Rule(pattern: /\b(?:is|are) told\b/, complaint: "is told: learns, receives, is notified of"),
        Rule(
            pattern: /\b(?:is|are|was|were) none(?:[.;:,)"]|$)/,
            complaint: "is none: say what it is not, or that there isn't one"),
        Rule(
            pattern: /(?:^\s*\/\/+ |[.:;] )Whom? (?!can\b|may\b)[a-z]/,
            complaint: "a sentence that begins with Who: name the subject, as in A waiting call"),
        Rule(
            pattern: /[:;] who (?!can\b|may\b)[a-z]/,
            complaint: "a clause that begins with who: name the subject, as in somebody who"),
        Rule(pattern: /\bto who\b/, complaint: "to who: to anyone who"),
        Rule(pattern: /\b[Pp]ass(?:es|ed|ing)? over\b/, complaint: "pass over: skip"),
        Rule(pattern: /\bshall\b/, complaint: "shall: should, must or will"),
        Rule(pattern: /\bnone the less\b/, complaint: "none the less: still"),
        Rule(pattern: /\brevision that counts\b/, complaint: "the revision that counts: the winning revision"),
        Rule(pattern: /\banother one's\b/, complaint: "another one's: say whose"),
        Rule(
            pattern: /\b(?![Tt]here\b)\w+ (?:is|are) no (?:count|number|text|object|list|record|receipt|id|key)s?\b/,
            complaint: "is no number: is not a number"),
        Rule(
            pattern: /\b(?![Tt]here\b)\w+ (?:is|are) no (?:store|document|revision|deletion|database|failure)s?\b/,
            complaint: "is no document: is not a document"),
        Rule(
            pattern: /\b(?![Tt]here\b)\w+ (?:is|are) no (?:JSON|URL|UTF-8|base64|part|damage|error|page|row)s?\b/,
            complaint: "is no JSON: is not JSON"),
        Rule(pattern: /\bby (?:itself|themselves)\b/, complaint: "by itself: automatically, alone or separately"),
    ]

    /// The lines of `file` that people read, with their numbers.
    private static func lines(of file: SourceFile) -> [(number: Int, text: Substring)] {
        guard file.path.hasSuffix(".md") else {
            return file.numberedLines.filter { $0.text.contains("//") || $0.text.contains("\"") }
        }
        var isFenced = false
        var isQuoted = false
        return file.numberedLines.compactMap { number, line in
            if line.hasPrefix("```") {
                isFenced.toggle()
                isQuoted = false
                return nil
            }
            if isFenced { return nil }
            // What is quoted may go on in the next line of a paragraph, and ends with it.
            if line.isEmpty { isQuoted = false }
            var text = ""
            for character in line {
                if character == "`" {
                    isQuoted.toggle()
                    text.append(character)
                } else if !isQuoted {
                    text.append(character)
                }
            }
            return (number, text[...])
        }
    }
}
