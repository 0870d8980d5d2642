internal import Foundation

/// Documents of about 500 bytes of JSON.
struct DocumentSet {
    struct Document {
        var id: String
        var json: Data
    }

    /// A document as a value.
    struct Person: Codable {
        var address: [String: String]
        var age: Int
        var name: String
        var notes: String
        var rank: String
        var tags: [String]
    }

    private(set) var all: [Document] = []
    private(set) var people: [Person] = []

    /// What holds all of them, on either side.
    static let cacheByteCount = 256 << 20

    /// - Parameter isInOrder: whether their ids are; else they are 22 random characters.
    init(count: Int, isInOrder: Bool = false, seed: UInt64 = 1) throws {
        var random = SplitMix(state: seed)
        func word(_ count: Int) -> String { random.word(count) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        for number in 0..<count {
            let person = Person(
                address: ["city": word(8), "street": word(16)], age: Int(random.next() % 90), name: word(12),
                notes: (0..<24).map { _ in word(11) }.joined(separator: " "), rank: word(16),
                tags: [word(5), word(5), word(5)])
            people.append(person)
            all.append(
                Document(
                    id: isInOrder ? String(format: "%022d", number) : word(22), json: try encoder.encode(person)))
        }
    }
}

/// The same numbers for the same seed.
struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }

    /// Letters and digits.
    mutating func word(_ count: Int) -> String {
        String(decoding: (0..<count).map { _ in Self.letters[Int(next() % UInt64(Self.letters.count))] }, as: UTF8.self)
    }

    private static let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".utf8)
}
