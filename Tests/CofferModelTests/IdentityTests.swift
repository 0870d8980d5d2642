import CofferSealing
import Testing

@testable import CofferModel

@Suite("Names of databases") struct DatabaseNameTests {
    static let longest = "a" + String(repeating: "b", count: 238)

    @Test(
        "Database names of the allowed characters are taken",
        arguments: [
            "f", "foo123", "foo/($12)", "f+-_00/", "z_$()+-/0", longest,
        ])
    func valid(name: String) throws {
        let name = try DatabaseName(name)
        #expect(name.fileName.hasSuffix(".coffer"))
        #expect(!name.fileName.contains("/"))
        #expect(name.fileName.utf8.count <= 255)
        #expect(DatabaseName(fileName: name.fileName) == name)
    }

    @Test(
        "Database names of other characters are refused",
        arguments: [
            "", "0", "123foo", "Foo", "fOo", "/etc/passwd", "foo ", " foo", "_foo", "foo.bar", "..", ".", "foo:bar",
            "föo", "f\u{0}",
            "f\n", "fo\u{301}o", "foo%", "ä", longest + "b",
        ])
    func invalid(name: String) {
        let error = #expect(throws: CofferError.self) { try DatabaseName(name) }
        #expect(error?.code == .invalidDatabaseName)
    }

    @Test("A slash in a database name is a colon in the file's name")
    func slash() throws {
        #expect(try DatabaseName("shop/orders").fileName == "shop:orders.coffer")
        #expect(DatabaseName(fileName: "shop:orders.coffer")?.text == "shop/orders")
    }

    @Test(
        "Files of other names are no databases",
        arguments: [
            "", ".coffer", "people", "people.Coffer", "people.coffer.bak", "People.coffer", "a/b.coffer",
            ".coffer-0123456789abcdef",
            "../people.coffer", "..coffer",
        ])
    func otherFiles(fileName: String) { #expect(DatabaseName(fileName: fileName) == nil) }
}

@Suite("Ids of documents") struct DocumentIDTests {
    @Test(
        "Document ids of 1 to 900 bytes are taken",
        arguments: [
            "x", "-", "Robin", " ", "ü", "a_b", "_design/x", "_local/x", "_design/é",
            String(repeating: "x", count: 900),
            String(repeating: "é", count: 450), "_local/" + String(repeating: "x", count: 893),
        ])
    func valid(id: String) throws { #expect(same(try DocumentID(id).text, id)) }

    @Test(
        "Document ids of other lengths or beginnings are refused",
        arguments: [
            "", "_", "_x", "_design", "_design/", "_local/", "_Design/x", "_id", String(repeating: "x", count: 901),
            String(repeating: "é", count: 450) + "x", "_local/" + String(repeating: "x", count: 894),
        ])
    func invalid(id: String) {
        let error = #expect(throws: CofferError.self) { try DocumentID(id) }
        #expect(error?.code == .invalidDocumentID)
        #expect(id.utf8.count < 900 || error?.description.contains(id) == false)
    }

    @Test("Document ids that only look alike are two")
    func composition() throws {
        #expect(try DocumentID("\u{E9}") != DocumentID("e\u{301}"))
        #expect(try Set([DocumentID("\u{E9}"), DocumentID("e\u{301}"), DocumentID("\u{E9}")]).count == 2)
    }

    @Test("A document id says whether it is a design or a local document")
    func kinds() throws {
        #expect(try DocumentID("_design/a").isDesign)
        #expect(try DocumentID("_local/a").isLocal)
        #expect(try !DocumentID("design/a").isDesign)
        #expect(try !DocumentID("_design/a").isLocal)
    }

    @Test("Document ids that are made have 136 random bits in 23 characters after a hyphen")
    func random() throws {
        let ids = (0..<2_000).map { _ in DocumentID.random() }
        #expect(Set(ids).count == ids.count)
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        for id in ids {
            #expect(id.text.utf8.count == 24)
            #expect(id.text.first == "-")
            #expect(id.text.allSatisfy(alphabet.contains))
            #expect(try DocumentID(id.text) == id)
        }
        // Every place but the last takes all 64 characters; the last has the four bits that are left.
        for place in 1...23 {
            let seen = Set(ids.map { Array($0.text.utf8)[place] })
            #expect(seen.count == (place == 23 ? 16 : 64))
        }
    }
}
