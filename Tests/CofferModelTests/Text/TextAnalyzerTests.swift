import Foundation
import Testing

@testable import CofferModel

@Suite("Taking texts apart into terms")
struct TextAnalyzerTests {
    @Test(
        "Words of a text are found whatever their case, accents and width",
        arguments: [
            ("Crème BRÛLÉE", ["creme", "brulee"]), ("STRASSE Straße", ["strasse", "strasse"]), ("ŁÓDŹ", ["lodz"]),
            ("e\u{301}cole école", ["ecole", "ecole"]), ("ΣΊΣΥΦΟΣ Σίσυφος", ["σισυφοσ", "σισυφοσ"]), ("ＡＢＣ", ["abc"]),
            ("İstanbul ISTANBUL", ["istanbul", "istanbul"]), ("ﬁnal", ["final"]),
        ])
    func folding(text: String, terms: [String]) { #expect(self.terms(of: text) == terms) }

    @Test("Accents tell words of a text apart where they count, in one scalar or in two")
    func accents() {
        #expect(terms(of: "crème e\u{301} \u{E9}", ignoresAccents: false) == ["cre\u{300}me", "e\u{301}", "e\u{301}"])
        // Marks in either order are one letter.
        let both = terms(of: "q\u{307}\u{323} q\u{323}\u{307}", ignoresAccents: false)
        #expect(both.count == 2 && both[0].unicodeScalars.elementsEqual(both[1].unicodeScalars))
    }

    @Test(
        "Identifiers, numbers and contractions are indexed by their parts",
        arguments: [
            ("user_name", ["user", "name"]), ("AB-12", ["ab", "12"]), ("don't", ["don", "t"]), ("3.14", ["3", "14"]),
            ("example.org/a?b=c", ["example", "org", "a", "b", "c"]), ("l’été", ["l", "ete"]),
            ("C++ & C#", ["c", "c"]),
        ])
    func parts(text: String, terms: [String]) { #expect(self.terms(of: text) == terms) }

    @Test("Texts in scripts without spaces are pairs of characters, and the last alone")
    func unspaced() {
        #expect(terms(of: "東京都。") == ["東京", "京都", "都"])
        #expect(terms(of: "コーヒー") == ["コー", "ーヒ", "ヒー", "ー"])
        #expect(terms(of: "ｶﾞﾂ") == ["ガツ".decomposedStringWithCanonicalMapping, "ツ"])
        #expect(terms(of: "สวัสดี") == ["สวั", "วัส", "สดี", "ดี"])
        #expect(terms(of: "학교에서 a한") == ["학교", "교에", "에서", "서", "a", "한"])
        #expect(terms(of: "東京", for: .searching) == ["東京"])
        #expect(terms(of: "東 京", for: .searching) == ["東", "京"])
    }

    @Test("Voicing marks and vowels make other words, also where accents don't count")
    func marksThatMatter() {
        #expect(terms(of: "が") != terms(of: "か"))
        #expect(terms(of: "ดี") != terms(of: "ด"))
        #expect(terms(of: "कि") != terms(of: "क"))
    }

    @Test("Pictures in a text are found, whatever the colour of their skin")
    func pictures() {
        #expect(terms(of: "ok 👍🏽👍 🇩🇪 ☀️ ⌘") == ["ok", "👍", "👍", "🇩🇪", "☀"])
        #expect(terms(of: "👩‍💻") == terms(of: "👩🏽‍💻"))
        #expect(terms(of: "Coffer™ ©") == ["coffer"])
    }

    @Test("Stop signs, controls and NUL are no words")
    func nothing() {
        for text in ["", " ,.;:-_!?\u{0}\n\u{200B}\u{AD}", "()[]{}<>«»„“"] {
            #expect(terms(of: text).isEmpty, "\(text)")
        }
    }

    @Test("Each term of a text says which bytes it is, whole characters in order")
    func ranges() {
        let text = "Zürich: 東京, user_name 👍🏽!"
        let bytes = Array(text.utf8)
        var found: [String] = []
        var last = 0
        TextAnalyzer(ignoresAccents: true).forEachTerm(in: bytes.span) { _, place in
            found.append(String(decoding: bytes[place.range], as: UTF8.self))
            #expect(place.range.lowerBound >= last)
            last = place.range.lowerBound
        }
        #expect(found == ["Zürich", "東京", "京", "user", "name", "👍🏽"])
    }

    @Test("Korean syllables are the same in one scalar and in letters")
    func hangul() {
        for text in ["한국어", "가각", "값을 읽다"] {
            let letters = text.decomposedStringWithCanonicalMapping
            #expect(Array(letters.utf8) != Array(text.utf8))
            #expect(terms(of: letters) == terms(of: text))
        }
        #expect(terms(of: "한국어") == ["한국", "국어", "어"])
    }

    @Test("A word that is cut is the same with its accents in one scalar and in two", arguments: 195...201)
    func cutAccents(count: Int) {
        let word = String(repeating: "x", count: count) + "éé"
        let inTwo = word.decomposedStringWithCanonicalMapping
        #expect(terms(of: word, ignoresAccents: false) == terms(of: inTwo, ignoresAccents: false))
    }

    @Test("A word of a megabyte is cut, and found by itself")
    func longWord() {
        let word = String(repeating: "ä", count: 500_000)
        let found = terms(of: word, ignoresAccents: false)
        #expect(found.count == 1 && found[0].utf8.count <= TextAnalyzer.termByteLimit)
        #expect(String(decoding: found[0].utf8, as: UTF8.self) == found[0])
        #expect(terms(of: word + "b", ignoresAccents: false) == found)
    }

    @Test("A stemmer makes the forms of English words one")
    func stems() throws {
        let stemmer = try #require(TextStemmer(language: "en"))
        #expect(TextStemmer(language: "xx") == nil)
        var found: [String] = []
        let bytes = Array("Connecting connections, connected! Été 東京".utf8)
        TextAnalyzer(ignoresAccents: true, stemmer: stemmer).forEachTerm(in: bytes.span) { term, _ in
            found.append(String(decoding: (0..<term.count).map { term[$0] }, as: UTF8.self))
        }
        // Beside each stem the word itself, marked, so that its beginnings are found.
        let words = ["connecting", "connections", "connected"].flatMap { ["connect", "\u{1}\($0)"] }
        #expect(found == words + ["ete", "東京", "京"])
        found = []
        let query = Array("connections".utf8)
        TextAnalyzer(ignoresAccents: true, stemmer: stemmer).forEachTerm(in: query.span, for: .searching) { term, _ in
            found.append(String(decoding: (0..<term.count).map { term[$0] }, as: UTF8.self))
        }
        #expect(found == ["connect"])
    }

    /// What Snowball 3.1.1 makes of them.
    @Test(
        "Stems of English words are Snowball's",
        arguments: [
            ("consistency", "consist"), ("knightly", "knight"), ("generously", "generous"), ("communism", "communism"),
            ("dying", "die"), ("added", "add"), ("hopping", "hop"), ("hoping", "hope"), ("skies", "sky"),
            ("gently", "gentl"),
            ("internationalization", "internation"), ("organization", "organiz"), ("geologists", "geolog"),
            ("paste", "paste"),
            ("yes", "yes"), ("sayings", "say"), ("happiness", "happi"), ("as", "as"), ("news", "news"),
            ("falling", "fall"),
        ])
    func snowball(word: String, stem: String) {
        #expect(String(decoding: EnglishStemmer.stem(Array(word.utf8)), as: UTF8.self) == stem)
    }

    private func terms(
        of text: String, ignoresAccents: Bool = true, for purpose: TextAnalyzer.Purpose = .indexing
    ) -> [String] {
        var terms: [String] = []
        let bytes = Array(text.utf8)
        TextAnalyzer(ignoresAccents: ignoresAccents).forEachTerm(in: bytes.span, for: purpose) { term, _ in
            var copy: [UInt8] = []
            for index in term.indices { copy.append(term[index]) }
            terms.append(String(decoding: copy, as: UTF8.self))
        }
        return terms
    }
}
