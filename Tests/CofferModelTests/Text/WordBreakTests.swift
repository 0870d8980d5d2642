import Foundation
import Testing

@testable import CofferModel

@Suite("Word boundaries")
struct WordBreakTests {
    /// Debian's package unicode-data, of the version that the tables are of.
    private static let folder = URL(filePath: "/usr/share/unicode")
    private static let file = folder.appending(path: "auxiliary/WordBreakTest.txt")
    private static let isThere =
        (try? String(contentsOf: file, encoding: .utf8))?.contains("WordBreakTest-15.0.0.txt") ?? false

    @Test(
        "Word boundaries stand where Unicode's own test says",
        .enabled(if: Self.isThere, "needs the package unicode-data, of Unicode 15.0.0"))
    func unicodeTest() throws {
        let lines = try String(contentsOf: Self.file, encoding: .utf8).split(separator: "\n")
        var count = 0
        for line in lines where !line.hasPrefix("#") {
            let (bytes, expected) = try Self.parse(line)
            #expect(Self.boundaries(in: bytes) == expected, "\(line)")
            count += 1
        }
        #expect(count == 1_823)
    }

    /// From the annex's table 1 and its rules.
    @Test(
        "Word boundaries keep together what the rules join",
        arguments: [
            ("can't", ["can't"]), ("32.3", ["32.3"]), ("3a", ["3a"]), ("a_b", ["a_b"]), ("\r\n", ["\r\n"]),
            ("e\u{301}a", ["e\u{301}a"]),
            ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]), ("👩‍💻x", ["👩‍💻", "x"]), ("a.", ["a", "."]), ("a  b", ["a", "  ", "b"]), ("א\"א", ["א\"א"]),
            ("א\"", ["א", "\""]), ("カナ", ["カナ"]), ("漢字", ["漢", "字"]),
        ])
    func rules(text: String, segments: [String]) {
        let bytes = Array(text.utf8)
        let boundaries = Self.boundaries(in: bytes)
        let found = zip(boundaries, boundaries.dropFirst()).map { String(decoding: bytes[$0..<$1], as: UTF8.self) }
        #expect(found == segments)
    }

    @Test("Word boundaries are found in bytes that are not UTF-8, each of which stands alone or in a word")
    func notUTF8() {
        for bytes: [UInt8] in [[0xFF], [0xC3], [0x61, 0xE2, 0x82], [0xF0, 0x9F, 0x98, 0x61], [0x80, 0x80]] {
            let boundaries = Self.boundaries(in: bytes)
            #expect(boundaries.last == bytes.count && boundaries == boundaries.sorted())
        }
    }

    private static func boundaries(in bytes: [UInt8]) -> [Int] {
        var boundaries = [0]
        while let last = boundaries.last, last < bytes.count {
            boundaries.append(WordBreaks.end(ofSegmentAt: last, in: bytes.span))
        }
        return boundaries
    }

    /// A line such as `÷ 0061 × 0301 ÷	# …`.
    private static func parse(_ line: Substring) throws -> (bytes: [UInt8], boundaries: [Int]) {
        var (bytes, boundaries) = ([UInt8](), [Int]())
        for part in line.prefix(while: { $0 != "#" }).split(whereSeparator: \.isWhitespace) {
            if part == "÷" {
                boundaries.append(bytes.count)
            } else if part != "×" {
                let scalar = try #require(UInt32(part, radix: 16).flatMap(Unicode.Scalar.init))
                bytes += String(scalar).utf8
            }
        }
        return (bytes, boundaries)
    }
}
