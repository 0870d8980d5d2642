import Testing

@testable import CofferTool

@Suite("Finding the records in a file")
struct RecordScannerTests {
    /// The records of `text` as `line:bytes`, or what kept them from being found.
    private func records(_ text: String, idField: String = "_id") throws -> [String] {
        let bytes = Array(text.utf8)
        var scanner = try RecordScanner(bytes.span, idField: idField)
        var records: [String] = []
        while let record = try scanner.next(bytes.span) {
            records.append("\(record.line):" + String(decoding: bytes[record.range], as: UTF8.self))
        }
        return records
    }

    @Test(
        "The elements of an array are the records of a file",
        arguments: [
            ("[]", []),
            (" [ ] \n", []),
            ("[{}]", ["1:{}"]),
            ("[{\"a\":1},\n {\"b\":[2,{}]}\n]\n", ["1:{\"a\":1}", "2:{\"b\":[2,{}]}"]),
            ("\u{FEFF}[{\"a\":\"\\\"]}\"}]", ["1:{\"a\":\"\\\"]}\"}"]),
            ("[\r\n{\"a\":\n\"é\"}\r\n,\r\n{}]", ["2:{\"a\":\n\"é\"}", "5:{}"]),
        ])
    func array(text: String, expected: [String]) throws {
        #expect(try records(text) == expected)
    }

    @Test(
        "The elements of an object's only array are the records of a file",
        arguments: [
            ("{\"people\":[{\"a\":1},{\"b\":2}]}", ["1:{\"a\":1}", "1:{\"b\":2}"]),
            ("{\n\"version\":{\"a\":[1]},\"people\":\n[\n{\"a\":1}],\"end\":null}", ["4:{\"a\":1}"]),
            ("{\"people\":[]}", []),
            ("{ \"people\" : [ {} ] }", ["1:{}"]),
        ])
    func wrapper(text: String, expected: [String]) throws {
        #expect(try records(text) == expected)
    }

    @Test(
        "An object that is no wrapper is a record itself",
        arguments: [
            "{}", "{\"a\":1}", "{\"tags\":[\"x\"]}", "{\"name\":\"x\",\"tags\":[]}", "{\"a\":[{}],\"b\":[]}",
            "{\"_id\":\"1\",\"a\":[{}]}", "{\"\\u005fid\":\"1\",\"a\":[{}]}",
        ])
    func single(text: String) throws {
        #expect(try records(text) == ["1:" + text])
    }

    @Test("With another member for ids, an object that has it is a record, and one with an _id may be a wrapper")
    func idField() throws {
        #expect(try records("{\"code\":\"1\",\"a\":[{}]}", idField: "code") == ["1:{\"code\":\"1\",\"a\":[{}]}"])
        #expect(try records("{\"_id\":\"1\",\"a\":[{}]}", idField: "code") == ["1:{}"])
    }

    @Test("Objects on lines of their own are the records, even when the first would be a wrapper")
    func lines() throws {
        #expect(try records("") == [])
        #expect(try records("\n \r\n") == [])
        #expect(try records("{\"a\":[{}]}\n{\"b\":1}") == ["1:{\"a\":[{}]}", "2:{\"b\":1}"])
        #expect(try records("{\"a\":1}\r\n\r\n{\n\"b\":1\n}\n{}\n") == ["1:{\"a\":1}", "3:{\n\"b\":1\n}", "6:{}"])
    }

    @Test(
        "What is not a record is refused with its line",
        arguments: [
            ("5", 1, "neither an object nor an array of objects"),
            ("\n\"text\"", 2, "neither an object nor an array of objects"),
            ("\u{FEFF}\u{FEFF}{}", 1, "neither an object nor an array of objects"),
            ("[{},\n5]", 2, "a record is not an object"),
            ("[{},\n[]]", 2, "a record is not an object"),
            ("[\n{},\n]", 3, "a record is not an object"),
            ("[,{}]", 1, "a record is not an object"),
            ("[{}\n{}]", 2, "',' is missing"),
            ("[{}]\n{}", 2, "something follows the array"),
            ("[{}]]", 1, "something follows the array"),
            ("{\"a\":[{},\n1]}", 2, "a record is not an object"),
            ("{\"a\":[{}]},", 1, "something follows a record on its line"),
            ("{}{}", 1, "something follows a record on its line"),
            ("{}\n[]", 2, "a record is not an object"),
            ("{}\nnull", 2, "a record is not an object"),
            ("[{\"a\":\"\n\"}]", 1, "a control character in a string"),
            ("[{\"a\":\"\\\n\"}]", 1, "a control character in a string"),
            ("[{\"a\":\n\u{1}}]", 2, "a control character"),
            ("[{]}", 1, "a bracket closes nothing"),
            ("{\"a\":}", 1, "a bracket closes nothing"),
            ("{\"a\":,}", 1, "a value is missing"),
            ("{\"a\" 1}", 1, "':' is missing"),
            ("{\"a\":1 \"b\":2}", 1, "'}' is missing"),
            ("{,}", 1, "'\"' is missing"),
        ])
    func refusals(text: String, line: Int, message: String) {
        #expect(throws: JSONCursor.Obstacle(line: line, message: message)) { try records(text) }
    }

    @Test(
        "A file of records that was cut off is refused wherever the cut is",
        arguments: [
            "[{\"a\":\"\\\"\"},\n{\"b\":[1,{}]}]", "{\"v\":1,\"a\":[{\"b\":\"é\\\\\"},{}],\"c\":{\"d\":\"]\"}}",
        ])
    func truncation(text: String) throws {
        let whole = Array(text.utf8)
        #expect(try records(text).count == 2)
        for count in 1..<whole.count {
            let part = Array(whole[..<count])
            #expect(throws: JSONCursor.Obstacle.self, "\(count) bytes") {
                var scanner = try RecordScanner(part.span, idField: "_id")
                while try scanner.next(part.span) != nil {}
            }
        }
    }

    @Test("An array of a million brackets is stepped over without recursion")
    func depth() throws {
        let deep = "{\"a\":" + String(repeating: "[", count: 1_000_000) + String(repeating: "]", count: 1_000_000) + "}"
        #expect(try records("[" + deep + "]") == ["1:" + deep])
    }
}
