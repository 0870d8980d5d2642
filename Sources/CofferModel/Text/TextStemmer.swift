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
