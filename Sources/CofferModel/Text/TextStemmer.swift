/// Reduces the forms of a language's words to one.
package struct TextStemmer: Sendable {
    private let stemming: @Sendable ([UInt8]) -> [UInt8]

    /// - Returns: nil for a language that it doesn't know.
    package init?(language: String) {
        guard language == "en" else { return nil }
        stemming = EnglishStemmer.stem
    }

    /// - Parameter stem: is given words as they are folded. What it makes of them is cut as words are; a word of which it makes
    ///   nothing stays as it is.
    package init(_ stem: @escaping @Sendable (String) -> String) {
        stemming = { word in
            var stem = Array(stem(String(decoding: word, as: UTF8.self)).utf8.prefix(TextAnalyzer.termByteLimit))
            // It begins with no mark, and ends with a whole scalar.
            while stem.first.map({ $0 < 0x20 }) ?? false { stem.removeFirst() }
            stem = Array(String(decoding: stem, as: UTF8.self).utf8.prefix(TextAnalyzer.termByteLimit))
            return stem.isEmpty ? word : stem
        }
    }

    func stem(_ word: [UInt8]) -> [UInt8] { stemming(word) }
}

/// Porter's stemmer for English, the second version: M. F. Porter, "The English (Porter2) stemming algorithm",
/// snowballstem.org/algorithms/english/stemmer.html. The names of regions and steps are that page's.
///
/// An apostrophe never comes here, since it separates terms: step 0 has nothing to do.
struct EnglishStemmer {
    private var word: [UInt8]
    /// Where R1 and R2 begin.
    private var r1 = 0
    private var r2 = 0

    /// The stem of a word in lower case; words of two letters, and with others than those of ASCII, are their own.
    static func stem(_ word: [UInt8]) -> [UInt8] {
        guard word.count > 2, word.allSatisfy({ $0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z") }) else {
            return word
        }
        let text = String(decoding: word, as: UTF8.self)
        if let special = exceptions[text] { return Array(special.utf8) }
        var stemmer = EnglishStemmer(word)
        stemmer.run(text)
        return stemmer.word.map { $0 == consonantY ? UInt8(ascii: "y") : $0 }
    }

    /// A y that is a consonant.
    private static let consonantY = UInt8(ascii: "Y")

    private static let exceptions: [String: String] = [
        "skis": "ski", "skies": "sky", "idly": "idl", "gently": "gentl", "ugly": "ugli", "early": "earli",
        "only": "onli",
        "singly": "singl", "sky": "sky", "news": "news", "howe": "howe", "atlas": "atlas", "cosmos": "cosmos",
        "bias": "bias", "andes": "andes",
    ]
    /// Words that step 1a leaves, and that nothing more happens to.
    private static let finished: Set<String> = [
        "inning", "outing", "canning", "herring", "earring", "evening", "proceed", "exceed", "succeed",
    ]

    /// Beginnings that belong to no suffix: R1 begins behind them.
    private static let wholePrefixes = [
        "gener", "commun", "arsen", "past", "univers", "later", "emerg", "organ", "inter",
    ]

    private init(_ word: [UInt8]) {
        self.word = word
        for index in word.indices where word[index] == UInt8(ascii: "y") && (index == 0 || isVowel(index - 1)) {
            self.word[index] = Self.consonantY
        }
        r1 = regionStart(after: 0)
        for prefix in Self.wholePrefixes where word.starts(with: prefix.utf8) { r1 = prefix.utf8.count }
        r2 = regionStart(after: r1)
    }

    private mutating func run(_ text: String) {
        step1a()
        if Self.finished.contains(String(decoding: word, as: UTF8.self)) { return }
        step1b()
        step1c()
        step2()
        step3()
        step4()
        step5()
    }

    // MARK: Words

    private func isVowel(_ index: Int) -> Bool {
        switch word[index] {
        case UInt8(ascii: "a"), UInt8(ascii: "e"), UInt8(ascii: "i"), UInt8(ascii: "o"), UInt8(ascii: "u"),
            UInt8(ascii: "y"):
            true
        default: false
        }
    }

    /// Behind the first consonant that follows a vowel from `start` on.
    private func regionStart(after start: Int) -> Int {
        var index = start + 1
        while index < word.count {
            if isVowel(index - 1) && !isVowel(index) { return index + 1 }
            index += 1
        }
        return word.count
    }

    private func ends(with suffix: String) -> Bool {
        word.count >= suffix.utf8.count && word.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    }

    private func hasVowel(before end: Int) -> Bool { (0..<end).contains { isVowel($0) } }

    /// Whether what stands before `end` ends in a short syllable.
    private func endsShort(before end: Int) -> Bool {
        if end == 2 { return isVowel(0) && !isVowel(1) }
        if word[..<end].elementsEqual("past".utf8) { return true }
        guard end >= 3, !isVowel(end - 3), isVowel(end - 2), !isVowel(end - 1) else { return false }
        return !"wxY".utf8.contains(word[end - 1])
    }

    private mutating func replace(_ suffix: String, with replacement: String) {
        word.removeLast(suffix.utf8.count)
        word += replacement.utf8
    }

    /// The longest of the suffixes that the word ends with.
    private func longestSuffix(of suffixes: [String]) -> String? {
        suffixes.filter { ends(with: $0) }.max { $0.utf8.count < $1.utf8.count }
    }

    private func isIn(_ region: Int, _ suffix: String) -> Bool { word.count - suffix.utf8.count >= region }

    // MARK: Steps

    private mutating func step1a() {
        switch longestSuffix(of: ["sses", "ied", "ies", "us", "ss", "s"]) {
        case "sses": replace("sses", with: "ss")
        case "ied"?, "ies"?: word.count > 4 ? replace("ies", with: "i") : replace("ies", with: "ie")
        case "s"?:
            // A vowel, and not right before the s.
            if word.count > 2, hasVowel(before: word.count - 2) { word.removeLast() }
        default: break
        }
    }

    private mutating func step1b() {
        switch longestSuffix(of: ["eed", "eedly", "ed", "edly", "ing", "ingly"]) {
        case let suffix? where suffix.hasPrefix("eed"):
            if isIn(r1, suffix) { replace(suffix, with: "ee") }
        case let suffix?:
            guard hasVowel(before: word.count - suffix.utf8.count) else { return }
            word.removeLast(suffix.utf8.count)
            if suffix == "ing", word.count == 2, !isVowel(0), word[1] == UInt8(ascii: "y") {
                replace("y", with: "ie")
            } else if let suffix = longestSuffix(of: ["at", "bl", "iz"]) {
                replace(suffix, with: suffix + "e")
            } else if longestSuffix(of: ["bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"]) != nil {
                // As in add, ebb and off.
                if word.count > 3 || !"aeo".utf8.contains(word[0]) { word.removeLast() }
            } else if word.count <= r1 && endsShort(before: word.count) {
                word.append(UInt8(ascii: "e"))
            }
        case nil: break
        }
    }

    private mutating func step1c() {
        guard let last = word.last, last == UInt8(ascii: "y") || last == Self.consonantY, word.count > 2,
            !isVowel(word.count - 2)
        else { return }
        word[word.count - 1] = UInt8(ascii: "i")
    }

    private static let step2: [String: String] = [
        "tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent", "izer": "ize",
        "ization": "ize",
        "ational": "ate", "ation": "ate", "ator": "ate", "alism": "al", "aliti": "al", "alli": "al", "fulness": "ful",
        "ousli": "ous", "ousness": "ous", "iveness": "ive", "iviti": "ive", "biliti": "ble", "bli": "ble",
        "fulli": "ful",
        "lessli": "less", "ogist": "og", "ogi": "og", "li": "",
    ]

    private mutating func step2() {
        guard let suffix = longestSuffix(of: Array(Self.step2.keys)), isIn(r1, suffix) else { return }
        let before = word.count - suffix.utf8.count - 1
        if suffix == "ogi", before < 0 || word[before] != UInt8(ascii: "l") { return }
        if suffix == "li", before < 0 || !"cdeghkmnrt".utf8.contains(word[before]) { return }
        replace(suffix, with: Self.step2[suffix] ?? "")
    }

    private static let step3: [String: String] = [
        "tional": "tion", "ational": "ate", "alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic", "ful": "",
        "ness": "", "ative": "",
    ]

    private mutating func step3() {
        guard let suffix = longestSuffix(of: Array(Self.step3.keys)), isIn(suffix == "ative" ? r2 : r1, suffix) else {
            return
        }
        replace(suffix, with: Self.step3[suffix] ?? "")
    }

    private static let step4 = [
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti", "ous",
        "ive",
        "ize", "ion",
    ]

    private mutating func step4() {
        guard let suffix = longestSuffix(of: Self.step4), isIn(r2, suffix) else { return }
        let before = word.count - suffix.utf8.count - 1
        if suffix == "ion", before < 0 || !"st".utf8.contains(word[before]) { return }
        word.removeLast(suffix.utf8.count)
    }

    private mutating func step5() {
        if ends(with: "e") {
            let end = word.count - 1
            if end >= r2 || end >= r1 && !endsShort(before: end) { word.removeLast() }
        } else if ends(with: "ll"), word.count - 1 >= r2 {
            word.removeLast()
        }
    }
}
