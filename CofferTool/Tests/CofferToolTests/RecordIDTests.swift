import Testing

@testable import CofferTool

@Suite("The id of a record")
struct RecordIDTests {
    private func id(_ text: String, _ id: RecordID) throws -> String? {
        let bytes = Array(text.utf8)
        return try id.value(of: JSONCursor.Extent(range: 0..<bytes.count, line: 7), bytes.span)
    }

    @Test(
        "A string is the id of a record, its escapes resolved",
        arguments: [
            ("{\"_id\":\"a\"}", "a"), ("{ \"x\" : {\"_id\":\"no\"} , \"_id\" : \"b\" }", "b"), ("{\"_id\":\"\"}", ""),
            ("{\"_id\":\"\\u00e9\\n\\\"\"}", "é\n\""), ("{\"\\u005f\\u0069d\":\"c\"}", "c"),
            ("{\"_id\":\"\\ud83d\\ude00\"}", "😀"),
        ])
    func strings(text: String, expected: String) throws {
        #expect(try id(text, .usual) == expected)
    }

    @Test("Composed and decomposed spellings of ids are different ids, and of members different members")
    func composition() throws {
        let composed = try id("{\"_id\":\"\u{E9}\"}", .usual)
        let decomposed = try id("{\"_id\":\"e\u{301}\"}", .usual)
        #expect(composed.map { Array($0.utf8) } == [0xC3, 0xA9])
        #expect(decomposed.map { Array($0.utf8) } == [0x65, 0xCC, 0x81])
        #expect(try id("{\"\u{E9}\":\"1\",\"e\u{301}\":\"2\"}", .member("\u{E9}")) == "1")
    }

    @Test("An integer is the id of a record as it stands there", arguments: ["0", "12", "-3", "99999999999999999999"])
    func integers(number: String) throws {
        #expect(try id("{\"code\":\(number)}", .member("code")) == number)
    }

    @Test("A record without an _id gets one later, a record without the member asked for is refused")
    func absent() throws {
        #expect(try id("{\"_idx\":\"a\",\"_i\":\"b\"}", .usual) == nil)
        #expect(throws: JSONCursor.Obstacle(line: 7, message: "a record has no code")) {
            try id("{\"_id\":\"a\"}", .member("code"))
        }
    }

    @Test(
        "An id that is neither a string nor an integer is refused",
        arguments: ["null", "true", "1.5", "1e3", "-", "[]", "{}", "[\"a\"]", "\"\\ud800\"", "\"\\x\""])
    func unusable(value: String) {
        #expect(throws: JSONCursor.Obstacle(line: 8, message: "_id is neither a string nor an integer")) {
            try id("{\n\"_id\":\(value)}", .usual)
        }
    }

    @Test(
        "Where another member is the id, an _id is left out of the document",
        arguments: [
            ("{\"_id\":\"a\"}", "{}"), ("{ \"_id\" : [1] , \"b\":2}", "{ \"b\":2}"),
            ("{\"b\":2,\"_id\":null }", "{\"b\":2 }"),
            ("{\"b\":2 ,\n\"\\u005fid\":{},\"c\":3}", "{\"b\":2,\"c\":3}"),
            ("{\"b\":{\"_id\":1}}", "{\"b\":{\"_id\":1}}"), ("{}", "{}"),
        ])
    func otherMember(text: String, expected: String) throws {
        let bytes = Array(text.utf8)
        let record = JSONCursor.Extent(range: 0..<bytes.count, line: 1)
        let left = try RecordID.member("code").body(of: record, bytes.span).flatMap { bytes[$0] }
        #expect(String(decoding: left, as: UTF8.self) == expected)
        #expect(try RecordID.usual.body(of: record, bytes.span) == [0..<bytes.count])
        #expect(try RecordID.member("_id").body(of: record, bytes.span) == [0..<bytes.count])
    }
}
