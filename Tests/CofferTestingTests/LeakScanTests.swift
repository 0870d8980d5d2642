import Coffer
import Foundation
import Testing

@testable import CofferTesting

@Suite("A search for plaintext")
struct LeakScanTests {
    let folder = Folder()
    let marker = "Grüße an Robin?>~"

    /// The ways that each encoding is written, with something beside it.
    func texts(_ encoding: LeakScan.Encoding) throws -> [Data] {
        switch encoding {
        case .utf8: [Data("«\(marker)»".utf8)]
        case .utf16LittleEndian: [try #require("x\(marker)y".data(using: .utf16LittleEndian))]
        case .utf16BigEndian: [try #require("x\(marker)y".data(using: .utf16BigEndian))]
        case .hex:
            [false, true].map { isUpper in
                Data(marker.utf8.map { String(format: isUpper ? "%02X" : "%02x", $0) }.joined().utf8)
            }
        case .base64:
            (0..<6).flatMap { before in
                (0..<3).flatMap { after in
                    let text =
                        (Data(repeating: 0xA7, count: before) + Data(marker.utf8) + Data(repeating: 0x5B, count: after))
                        .base64EncodedString()
                    return [text, text.replacing("+", with: "-").replacing("/", with: "_")].map { Data($0.utf8) }
                }
            }
        }
    }

    @Test("A search for plaintext finds each encoding, and says which and where", arguments: LeakScan.Encoding.allCases)
    func encodings(encoding: LeakScan.Encoding) throws {
        let scan = try LeakScan(for: ["nowhere to be found", marker])
        for (number, text) in try texts(encoding).enumerated() {
            let noise = Data((0..<997).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) })
            try folder.write(noise + text + noise, as: "file")
            // UTF-16 of this text can be read in either order, one byte further on.
            let leak = try #require(try scan.search(folder.url).leaks.first { $0.encoding == encoding })
            #expect(leak.path == "file")
            #expect(leak.marker == 1)
            #expect(leak.count == 1)
            #expect((997..<997 + text.count).contains(try #require(leak.offset)))
            #expect(!leak.description.contains("Robin"))
        }
    }

    @Test("A search for plaintext finds nothing in a text with any one character changed")
    func nothing() throws {
        let scan = try LeakScan(for: [marker])
        for index in marker.indices {
            var text = marker
            text.replaceSubrange(index...index, with: "\u{1}")
            try folder.write(Data(text.utf8), as: "file")
            #expect(try scan.search(folder.url).leaks.isEmpty)
        }
    }

    @Test("A search for plaintext finds what lies across pieces, wherever they end, and counts each once")
    func pieces() throws {
        let scan = try LeakScan(for: ["12345678", "5678abcdefgh"])
        let text = Array("..12345678abcdefgh....1234567812345678..".utf8)
        for size in 1...text.count {
            var rest = text[...]
            let leaks = try scan.leaks(called: "memory") {
                let piece = rest.prefix(size)
                rest = rest.dropFirst(size)
                return piece.isEmpty ? nil : Piece(offset: piece.startIndex, bytes: Array(piece))
            }
            #expect(leaks.map(\.marker) == [0, 1], "pieces of \(size)")
            #expect(leaks.map(\.offset) == [2, 6], "pieces of \(size)")
            #expect(leaks.map(\.count) == [3, 1], "pieces of \(size)")
        }
    }

    @Test("A search for plaintext looks into every file, at its beginning and end, and into names, and follows no link")
    func files() throws {
        let scan = try LeakScan(for: [marker])
        let large = Data(repeating: 0x61, count: (1 << 20) - 5)
        try folder.write(Data(marker.utf8) + large, as: "a/b/.hidden")
        try folder.write(large + Data(marker.utf8), as: "large")
        try folder.write(Data(), as: "a/\(marker)")
        try FileManager.default.createSymbolicLink(
            at: folder.url.appending(path: "link"), withDestinationURL: folder.url.appending(path: "large"))
        let report = try scan.search(folder.url)
        #expect(report.leaks.map(\.path) == ["a/\(marker)", "a/b/.hidden", "large"])
        #expect(report.leaks.map(\.offset) == [nil, 0, large.count])
        #expect(report.fileCount == 3)
        #expect(report.byteCount == 2 * (large.count + marker.utf8.count))
        #expect(try scan.search(folder.url.appending(path: "large")).leaks.map(\.offset) == [large.count])
    }

    @Test("A search for plaintext is refused for markers that chance would find, and for what is not there")
    func refused() throws {
        for markers in [[], ["1234567"], ["long enough", "short"]] {
            do throws(CofferError) {
                _ = try LeakScan(for: markers)
                Issue.record("\(markers.count) markers were taken")
            } catch {
                #expect(error.code == .invalidArgument)
            }
        }
        do throws(CofferError) {
            _ = try LeakScan(for: ["12345678"]).search(folder.url.appending(path: "missing"))
            Issue.record("a search of nothing")
        } catch {
            #expect(error.code == .ioFailed)
        }
    }
}

/// A folder of a test's own.
final class Folder: Sendable {
    let url = URL.temporaryDirectory.appending(path: "coffer-scan-\(UUID())", directoryHint: .isDirectory)

    init() { try? FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
    deinit { try? FileManager.default.removeItem(at: url) }

    func write(_ data: Data, as name: String) throws {
        let file = url.appending(path: name)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try data.write(to: file)
    }
}
