/// The letters of Korean syllables, which are one scalar each or one for the whole syllable: The Unicode Standard, section 3.12.
enum HangulLetters {
    private static let (firstSyllable, firstInitial, firstVowel, beforeFirstFinal): (UInt32, UInt32, UInt32, UInt32) = (
        0xAC00, 0x1100, 0x1161, 0x11A7
    )
    private static let (initialCount, vowelCount, finalCount): (UInt32, UInt32, UInt32) = (19, 21, 28)

    /// Whether a scalar is a letter that goes on a syllable: a vowel, or a final consonant.
    static func continues(_ scalar: UInt32) -> Bool { (0x1160...0x11FF).contains(scalar) }

    /// The syllable that two scalars make, one after the other: of an initial consonant and a vowel, or of a syllable of these two
    /// and a final consonant. Nil if they make none.
    static func syllable(_ first: UInt32, _ second: UInt32) -> UInt32? {
        let (initial, vowel) = (first &- firstInitial, second &- firstVowel)
        if initial < initialCount, vowel < vowelCount {
            return firstSyllable + (initial * vowelCount + vowel) * finalCount
        }
        let (syllable, final) = (first &- firstSyllable, second &- beforeFirstFinal)
        guard syllable < initialCount * vowelCount * finalCount, syllable % finalCount == 0, final > 0,
            final < finalCount
        else { return nil }
        return first + final
    }
}
