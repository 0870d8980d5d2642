import TestSupport
import Testing

@testable import CofferModel

@Suite("Patterns of texts")
struct TextPatternTests {
    private func matches(_ text: String, like pattern: String, ignoring: DocumentPredicate.TextDifferences = []) -> Bool
    {
        let predicate = DocumentPredicate(TextPattern.like("a", pattern, ignoring: ignoring))
        return predicate.matches(["a": .string(text)], id: "")
    }

    /// As short as it can be said; takes time without end for many wildcards.
    private func isLike(_ text: Substring.UnicodeScalarView, _ pattern: Substring.UnicodeScalarView) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        let rest = pattern.dropFirst()
        if first == "%" { return isLike(text, rest) || !text.isEmpty && isLike(text.dropFirst(), pattern) }
        guard let letter = text.first else { return false }
        return (first == "_" || first == letter) && isLike(text.dropFirst(), rest)
    }

    private func random(_ letters: [Character], upTo count: Int, _ random: inout SeededNumbers) -> String {
        String(
            (0..<Int.random(in: 0...count, using: &random)).map { _ in letters.randomElement(using: &random) ?? "a" })
    }

    @Test("Patterns of texts are met as they are by hand", arguments: 0..<4)
    func random(seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        var metCount = 0
        for _ in 0..<20_000 {
            let text = self.random(["a", "b", "\u{1F600}"], upTo: 12, &random)
            let pattern = self.random(["a", "b", "_", "%", "\u{1F600}"], upTo: 8, &random)
            let expected = isLike(Substring(text).unicodeScalars, Substring(pattern).unicodeScalars)
            #expect(matches(text, like: pattern) == expected, "\(text) like \(pattern)")
            #expect(matches(text.uppercased(), like: pattern, ignoring: .case) == expected)
            if expected { metCount += 1 }
        }
        #expect(metCount > 1_000)
    }

    @Test("Patterns of texts may be longer than a word has bits")
    func long() {
        for count in [62, 63, 64, 65, 127, 128, 129, 1_000] {
            let text = String(repeating: "a", count: count - 1)
            let pattern = "%b" + String(repeating: "_", count: count - 2) + "c%"
            #expect(matches("xxb" + text.dropFirst() + "cyy", like: pattern), "\(count)")
            #expect(!matches("xxb" + text.dropFirst(2) + "cyy", like: pattern), "\(count)")
            #expect(matches(text + "ab", like: "%" + text + "b"))
            #expect(matches("b" + text + "b", like: "%" + text + "%"))
            #expect(!matches(String(text.dropFirst()), like: "%" + text + "%"))
        }
    }

    /// What tries each way to fill the gaps takes longer than anybody waits.
    @Test("Patterns of texts can't keep anybody waiting", .timeLimit(.minutes(30)))
    func hostile() {
        let text = String(repeating: "a", count: 200_000)
        #expect(!matches(text, like: String(repeating: "%a", count: 400) + "b"))
        #expect(!matches(text, like: String(repeating: "%_a", count: 300) + "%b%"))
        #expect(!matches(text, like: "%" + String(repeating: "a", count: 900) + "b%"))
        #expect(!matches(text, like: "%" + String(repeating: "_", count: 900) + "b%"))
        #expect(matches(text, like: String(repeating: "%", count: 100_000)))
        #expect(!matches(text, like: "%" + String(repeating: "a", count: 100_000) + "b%"))
        let marks = "e" + String(repeating: "\u{301}", count: 100_000)
        #expect(matches(marks, like: "E", ignoring: [.case, .accents]))
    }

    @Test(
        "Patterns of texts ignore case and accents as Unicode has them",
        arguments: [
            ("Straße", "STRASSE", 1), ("ΣΊΣΥΦΟΣ", "σίσυφος", 1), ("Zoë", "zoe", 3), ("Zoe\u{308}", "Zoë", 1),
            ("Zoe\u{308}", "zo_", 1), ("Ångström", "angstrom", 3), ("Ångström", "ÅNGSTRÖM", 1), ("Zoë", "Zoe", 2),
            ("İstanbul", "istanbul", 3), ("ﬁn", "FIN", 1), ("café", "cafe\u{301}", 2),
        ])
    func folded(text: String, pattern: String, differences: Int) {
        let ignoring = DocumentPredicate.TextDifferences(rawValue: differences)
        #expect(matches(text, like: pattern, ignoring: ignoring))
        #expect(matches(pattern.contains("_") ? text : pattern, like: pattern, ignoring: ignoring))
        #expect(!matches(text, like: pattern), "they differ byte for byte")
    }

    @Test("Patterns of texts keep apart what isn't to be ignored")
    func apart() {
        #expect(!matches("Zoë", like: "zoe", ignoring: .case))
        #expect(!matches("Zoë", like: "zoë", ignoring: .accents))
        #expect(!matches("øre", like: "ore", ignoring: [.case, .accents]), "a letter of its own")
        #expect(!matches("e\u{301}", like: "\u{e9}"), "by code points")
        // Taken apart, the syllable begins with another one.
        #expect(!matches("한국", like: "하%", ignoring: .accents))
        #expect(matches("한국", like: "_국", ignoring: .accents))
    }

    @Test("Patterns of texts take a backslash before what stands for itself")
    func escapes() {
        #expect(matches("50%", like: #"50\%"#) && !matches("500", like: #"50\%"#))
        #expect(matches("a_b", like: #"a\_b"#) && !matches("acb", like: #"a\_b"#))
        #expect(matches(#"a\b"#, like: #"a\\b"#) && matches(#"a\"#, like: #"a\"#))
        #expect(matches("x%y", like: #"%\%%"#) && !matches("xy", like: #"%\%%"#))
    }
}
