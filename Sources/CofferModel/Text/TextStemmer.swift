/// Reduces the forms of a language's words to one.
package struct TextStemmer: Sendable {
    /// The language, by its code in BCP 47.
    package let language: String
    private let stemming: @Sendable ([UInt8]) -> [UInt8]

    /// - Returns: nil for a language that it doesn't know.
    package init?(language: String) {
        guard language == "en" else { return nil }
        self.language = language
        stemming = EnglishStemmer.stem
    }

    func stem(_ word: [UInt8]) -> [UInt8] { stemming(word) }
}
