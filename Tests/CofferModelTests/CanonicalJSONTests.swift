import CofferSealing
import Foundation
import Testing

@testable import CofferModel

@Suite("Canonical JSON") struct CanonicalJSONTests {
    @Test("JSON is put in canonical form", arguments: Vectors.read("json/valid.json", as: [Vectors.Text].self))
    func canonicalForm(vector: Vectors.Text) throws {
        #expect(same(try canonical(vector.bytes), vector.canonical))
    }

    @Test("JSON in canonical form stays as it is", arguments: Vectors.read("json/valid.json", as: [Vectors.Text].self))
    func idempotent(vector: Vectors.Text) throws {
        let form = try #require(vector.canonical)
        #expect(same(try canonical(form), form))
    }

    @Test(
        "Values read from JSON are written in canonical form",
        arguments: Vectors.read("json/valid.json", as: [Vectors.Text].self))
    func valuesInBetween(vector: Vectors.Text) throws {
        var canonicalizer = Canonicalizer(.value)
        try canonicalizer.scan(vector.bytes.span)
        let unordered = canonicalizer.normalized(vector.bytes.span)
        let value = try CanonicalReader.value(unordered.span)
        let form = try #require(vector.canonical)
        #expect(same(String(decoding: try CanonicalWriter.text(of: value), as: UTF8.self), form))
        #expect(value == (try CanonicalReader.value(Array(form.utf8).span)))
    }

    /// White space that came first, before an object that is compact but not in order, once gave other bytes than it has.
    @Test(
        "White space around JSON changes nothing", arguments: [(" ", ""), ("\n", "\n"), ("\t\r\n  ", ""), ("", "  ")])
    func whiteSpaceAround(before: String, after: String) throws {
        var texts = Vectors.read("json/valid.json", as: [Vectors.Text].self).map(\.bytes)
        texts += [#"{"b":1,"a":2}"#, #"[{"b":{"d":1,"c":2},"a":3},{"b":1,"a":2}]"#].map { Array($0.utf8) }
        for text in texts {
            let surrounded = Array(before.utf8) + text + Array(after.utf8)
            #expect(try canonical(surrounded) == canonical(text))
        }
        let document = #"{"_id":"x","b":{"d":1,"c":2},"a":3}"#
        let body = try DocumentBody(json: Array((before + document + after).utf8))
        #expect(same(text(body.body), #"{"a":3,"b":{"c":2,"d":1}}"#))
        #expect(same(body.id, "x"))
    }

    @Test("What is not JSON is refused", arguments: Vectors.read("json/invalid.json", as: [Vectors.Text].self))
    func refused(vector: Vectors.Text) throws {
        let error = #expect(throws: CofferError.self) { try canonical(vector.bytes) }
        #expect(error?.code.description == vector.code)
        #expect(error?.status == 400)
    }

    @Test(
        "A document says its content, and what it is",
        arguments: Vectors.read("json/documents.json", as: [Vectors.Text].self))
    func documents(vector: Vectors.Text) throws {
        let document = try DocumentBody(json: vector.bytes)
        #expect(same(text(document.body), vector.canonical))
        #expect(same(document.id, vector.id))
        #expect(same(document.revision, vector.revision))
        #expect(document.isDeletion == vector.isDeletion)
        #expect((document.attachments != nil) == vector.hasAttachments)
    }

    @Test(
        "A JSON value that is no document is refused",
        arguments: Vectors.read("json/invalid-documents.json", as: [Vectors.Text].self))
    func refusedDocuments(vector: Vectors.Text) throws {
        let error = #expect(throws: CofferError.self) { try DocumentBody(json: vector.bytes) }
        #expect(error?.code.description == vector.code)
    }

    @Test("Every Double is written as ECMAScript writes it, 64-bit integers in all digits")
    func numbers() throws {
        for vector in Vectors.read("json/numbers.json", as: [Vectors.Number].self) {
            let number = JSONNumber(vector.value)
            #expect(number.description == vector.canonical)
            #expect(try canonical(vector.canonical) == vector.canonical)
            #expect(try CanonicalReader.value(Array(vector.canonical.utf8).span) == .number(number))
        }
    }
}
