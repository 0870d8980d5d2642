import Coffer
@testable import CofferModel
@testable import CofferSealing
import Foundation

/// JSON as it comes: what is taken has one canonical form, whichever way it goes through the library.
enum JSONHarness {
    @Sendable static func run(_ input: [UInt8]) throws {
        try readStored(input)
        try saveDocument(input)
        var canonicalizer = Canonicalizer(.value)
        do throws(CofferError) {
            try canonicalizer.scan(input.span)
        } catch {
            expect(error.status == 400, "invalid JSON is a \(error.status)")
            return
        }
        let canonical = canonicalizer.canonical(input.span)

        var again = Canonicalizer(.value)
        try again.scan(canonical.span)
        expect(again.canonical(canonical.span) == canonical, "canonical JSON has another canonical form")

        let value = try CanonicalReader.value(canonical.span)
        expect(try CanonicalWriter.text(of: value) == canonical, "a value is written otherwise than it was read")
        let normalized = canonicalizer.normalized(input.span)
        expect(try CanonicalReader.value(normalized.span) == value, "the order of members changes a value")
        expect(value.hashValue == (try CanonicalReader.value(normalized.span)).hashValue, "equal values hash alike")
        expect(try JSONValue(canonical: canonical) == value, "the decoder reads another value")
        expect(try Coded(canonical: canonical).value == value, "the decoder's containers hold another value")

        // What we take, others take.
        let theirs = try? JSONSerialization.jsonObject(with: Data(input), options: .fragmentsAllowed)
        expect(theirs != nil, "Foundation does not take this JSON")
    }

    /// What is stored was checked when it was saved. If it wasn't, it is an error, and nothing worse.
    private static func readStored(_ input: [UInt8]) throws {
        if let value = try? CanonicalReader.value(input.span) { _ = try? CanonicalWriter.text(of: value) }
        _ = try? JSONValue(canonical: input)
        _ = try? Coded(canonical: input)
        _ = try? Person(canonical: input)
    }

    private static func saveDocument(_ input: [UInt8]) throws {
        for isForeign in [false, true] {
            let document: DocumentBody
            do throws(CofferError) {
                document = try DocumentBody(json: input, isForeign: isForeign)
            } catch {
                expect(error.status == 400, "an invalid document is a \(error.status)")
                continue
            }
            do throws(CofferError) {
                let body = document.body
                let again = try DocumentBody(json: body.bytes)
                expect(again.body == body, "a document's body has another canonical form")
                expect(again.id == nil && again.revision == nil && !again.isDeletion, "a body says what it is not")
                let object = try JSONObject(canonical: body.bytes.span)
                expect(try DocumentBody(object).body == body, "properties are written otherwise than they were read")
                do {
                    let encoded = try DocumentBody(encoding: object)
                    expect(encoded.body == body, "the encoder writes another body")
                } catch {
                    fatalError("the encoder refuses what was read: \(error)")
                }
            } catch {
                fatalError("a document's body is refused: \(error)")
            }
        }
    }

    /// Decodes through the containers, as a type of one's own does.
    private struct Coded: Decodable {
        let value: JSONValue
        init(from decoder: any Decoder) throws { value = try JSONValue(from: decoder) }
    }

    private struct Person: Codable {
        var name: String
        var age: Int8?
        var size: Float?
        var tags: [String: [Double]]?
        var born: Date?
        var photo: Data?
        var id: UUID?
        var money: Decimal?
    }
}
