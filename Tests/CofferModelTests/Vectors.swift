import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import CofferModel

/// The files in `Vectors/`.
enum Vectors {
    static func read<T: Decodable>(_ path: String, as type: [T].Type = [T].self) -> [T] {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        do {
            let data = try Data(contentsOf: root.appending(path: "Vectors").appending(path: path))
            return try JSONDecoder().decode([T].self, from: data)
        } catch {
            fatalError("Vectors/\(path): \(error)")
        }
    }

    struct Text: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let input: String?
        let inputHex: String?
        let canonical: String?
        let code: String?
        let id: String?
        let revision: String?
        let isDeletion: Bool?
        let hasAttachments: Bool?

        var testDescription: String { name }

        var bytes: [UInt8] {
            if let input { return Array(input.utf8) }
            guard let bytes = inputHex.flatMap({ [UInt8](hex: $0) }) else {
                fatalError("\(name) has neither a text nor bytes in hex")
            }
            return bytes
        }
    }

    struct Number: Decodable, Sendable {
        let bits: String
        let canonical: String

        var value: Double { Double(bitPattern: UInt64(bits, radix: 16) ?? 0) }
    }

    struct Revision: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let parent: String?
        let isDeletion: Bool
        let canonical: String
        let revision: String

        var testDescription: String { name }
    }
}

/// Canonical JSON of any value.
func canonical(_ json: [UInt8]) throws -> String {
    var canonicalizer = Canonicalizer(.value)
    try canonicalizer.scan(json.span)
    return String(decoding: canonicalizer.canonical(json.span), as: UTF8.self)
}

func canonical(_ json: String) throws -> String { try canonical(Array(json.utf8)) }

func text(_ body: CanonicalBody) -> String { String(decoding: body.bytes, as: UTF8.self) }

/// Whether two strings are the same bytes: `==` would let another composition pass.
func same(_ left: String?, _ right: String?) -> Bool {
    left.map { Array($0.utf8) } == right.map { Array($0.utf8) }
}
