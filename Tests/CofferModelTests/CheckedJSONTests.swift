import CofferModel
import Testing

@Suite("Checked JSON, of which a part is read")
struct CheckedJSONTests {
    private func root(_ text: String) throws -> CheckedJSON.Part {
        try #require(try CheckedJSON(Array(text.utf8), valueLimit: 1_000)).root
    }

    @Test("Members and elements are found whatever stands before them, and say what the whole says")
    func parts() throws {
        let root = try root(
            #"""
            { "s": "\"}],{[\\", "n": [ -1.5e3, [ ], { }, [[{"a": [1, "]"]}]] ], "docs": [ "a", {"x" : {"docs": 1}}, null, true, 7 ],
              "\u0064ocs2": false, "d": {} }
            """#)
        let value = try root.value()
        for name: StaticString in ["s", "n", "docs", "docs2", "d"] {
            #expect(try root[name]?.value() == value["\(name)"], "\(name)")
        }
        #expect(root["x"] == nil && root["doc"] == nil && root["docs3"] == nil && root["a"] == nil)
        let elements = try #require(root["docs"]?.elements)
        #expect(try elements.map { try $0.value() } == value["docs"]?.arrayValue)
        #expect(
            elements.map { String(decoding: $0.bytes, as: UTF8.self) } == [
                #""a""#, #"{"x":{"docs":1}}"#, "null", "true", "7",
            ])
        #expect(try root["n"]?.elements?.map { try $0.value() } == value["n"]?.arrayValue)
        #expect(elements.map(\.isObject) == [false, true, false, false, false])
    }

    @Test("What has no parts has none", arguments: ["[]", "{}", "7", "\"a\"", "null", " [ ] "])
    func nothing(_ text: String) throws {
        let root = try root(text)
        #expect(root["a"] == nil)
        #expect(root.elements?.isEmpty == (text.contains("[") ? true : nil))
        #expect(try root.value() == JSONValue(json: Array(text.utf8)))
    }
}
