import CofferSealing
import Testing

@testable import CofferModel

@Suite("Predicates")
struct PredicateTests {
    private let person: JSONObject = [
        "name": "Robin", "age": 31, "address": ["city": "Berlin", "no": [7, "b"]], "a.b": true, "gone": nil,
        "tags": ["x", "y"], "none": [], "case": "Äpfel und Bären", "any": 3,
        "items": [["n": 1, "k": ["a"]], ["n": 5, "k": ["b", "c"]], ["m": nil]], "it": 7,
        "[0]": "odd", "": "empty",
    ]

    private func holds(_ expression: String) throws -> Bool {
        try DocumentPredicate(expression).matches(person, id: "p1")
    }

    @Test(
        "Predicates hold where the property is there, of that type, and as it says",
        arguments: [
            "name = \"Robin\"", "name == 'Robin'", "age >= 31", "age <= 31", "age > 30.5", "age < 31.5", "age != 30",
            "address.city = 'Berlin'", "address.no[0] = 7", "address.no[1] = 'b'", "a\\.b = true", "`a\\.b` = true",
            "gone = null", "gone exists", "not missing exists", "not[0] = 'odd' or age = 31", "tags[1] = \"y\"",
            "tags = [\"x\", \"y\"]",
            "tags >= [\"x\"]",
            "_id = 'p1'", "name in ['Ada', 'Robin']", "name starts with 'Ro'", "name STARTS WITH ''",
            "age = 31 and name = 'Robin'", "age = 30 or name = 'Robin'", "age = 30 and name = 'x' or age = 31",
            "age = 31 or age = 1 and age = 2", "not age = 30 and age = 31", "not (age = 31 and age = 30)",
            "not not age = 31",
            "((((age=31))))", "age=31 AND name='Robin'", "address = {\"city\":\"Berlin\",\"no\":[7,\"b\"]}",
            "\\[0] = 'odd'",
            "address.no != [7]", "name > 'R'", "name < 'Robinson'", " \n age\t= 31 ", "`` = 'empty'",
            "name contains 'obi'", "name contains ''", "name ends with 'in'", "name begins with 'R'", "name like 'R%n'",
            "name like 'R_b__'", "name like '%'", "name like 'Robin'", "name like '%b%i%'",
            "name CONTAINS 'BI' ignoring case",
            "case contains 'ÄPFEL' ignoring case", "case contains 'apfel' ignoring case, accents",
            "case like '%BAREN' ignoring accents,case and age = 31", "case like 'a%n' ignoring case, accents",
            "age between 30 and 31", "age between 31 and 31 and name = 'Robin'", "not age between 1 and 2",
            "missing is missing", "name is not missing", "gone is null", "gone is a null", "name is a string",
            "age is number", "address is an object", "tags is a list", "a\\.b is a boolean", "age is not a string",
            "missing is not a string", "tags has 'x'", "none is a list", "not none has 1", "tags has\"y\"",
            "any tags (it = 'x')", "any tags(it starts with 'y')", "every tags (it is a string)", "every none (it = 1)",
            "any items (it.n > 1 and it.n < 9)", "any items (it.k has 'c')", "any items (any it.k (it = 'a'))",
            "every items (it is an object)", "any items (it.n is missing and it.m is null)", "any = 3", "any exists",
            "it = 7", "any `tags` (it = 'x') or age = 1", "every items (it.n < 9 or it.n is missing)",
        ])
    func hold(expression: String) throws { #expect(try holds(expression)) }

    @Test(
        "Predicates do not hold otherwise, and nothing is said of another type",
        arguments: [
            "name = 'robin'", "age > 31", "age < 31", "age = \"31\"", "age > '1'", "age < '1'", "missing != 1",
            "missing = null",
            "missing < 1", "address.city.x = 1", "address.no[2] = 7", "address.no[0].x exists", "name.x exists",
            "tags[x] exists",
            "name in []", "name in ['x']", "age starts with '3'", "name starts with 'robin'", "not age = 31",
            "gone > null",
            "a.b exists", "_id = 'p2'", "age = 30 or name = 'x'",
            "name contains 'x'", "name contains 'ROB'", "age contains '3'", "name ends with 'Ro'", "name like 'R_n'",
            "name like 'obin'", "name like ''", "name like 'r%'", "case contains 'apfel' ignoring case",
            "case contains 'APFEL' ignoring accents", "age between 32 and 40", "age between 40 and 30",
            "age between '1' and '9'", "gone is missing", "name is missing", "gone is a string", "age is a list",
            "name has 'R'", "none has null", "tags has 'z'", "any tags (it = 'z')", "any none (it exists)",
            "any name (it exists)", "every name (it exists)", "every tags (it = 'x')", "any missing (it exists)",
            "every missing (it exists)", "any items (it.n > 1 and it.n < 5)", "any items (it.k has 'z')",
            "any items (it._id exists)", "tags[] = 'x'", "tags[] exists",
        ])
    func fail(expression: String) throws { #expect(try !holds(expression)) }

    @Test(
        "Predicates that can't be read are a 400 that says where, and nothing of what is there",
        arguments: [
            ("", 0), ("name", 4), ("name =", 6), ("name = ", 7), ("name = Robin", 7), ("name = 'Robin", 13), ("= 3", 0),
            ("name = 1 and", 12), ("name = 1 name = 2", 9), ("(name = 1", 9), ("name = 1)", 8), ("name in 3", 8),
            ("name in [1", 10), ("name in [1 2]", 11), ("name in [x]", 9),
            ("name starts 'x'", 12), ("name starts with 3", 17), ("name = [1", 7), ("name = {\"a\":1,\"a\":2}", 7),
            ("name = 1e999", 7),
            ("name ! 3", 5), ("not", 3), ("name = \"\\ud800\"", 7),
            ("name contains 3", 14), ("name ends 'x'", 10), ("name like", 9), ("name like 'x' ignoring", 22),
            ("name like 'x' ignoring space", 23), ("name like 'x' ignoring case,", 28), ("age between 1", 13),
            ("age between 1 or 2", 14), ("age is 3", 7), ("age is not", 10), ("tags has", 8), ("any tags it = 1", 4),
            ("any tags (name = 'x')", 10), ("any tags (it = 'x'", 18), ("every tags ()", 12),
            ("any tags (it.x", 14),
        ])
    func refused(expression: String, offset: Int) throws {
        let error = #expect(throws: CofferError.self) { try DocumentPredicate(expression) }
        #expect(error?.status == 400)
        #expect(error?.detail?.hasSuffix("at byte \(offset)") == true, "\(error?.detail ?? "")")
        #expect(error?.description.contains("Robin") == false)
    }

    @Test("Predicates nest a hundred deep, and no deeper")
    func depth() throws {
        let (open, close) = (String(repeating: "(", count: 100), String(repeating: ")", count: 100))
        #expect(try holds(open + "age = 31" + close))
        #expect(throws: CofferError.self) { try DocumentPredicate("(" + open + "age = 31" + close + ")") }
        let elements = (String(repeating: "any it (", count: 100), String(repeating: ")", count: 100))
        #expect(throws: Never.self) {
            try DocumentPredicate("any tags (" + String(elements.0.dropLast(8)) + "it = 1" + elements.1)
        }
        #expect(throws: CofferError.self) {
            try DocumentPredicate("any tags (" + elements.0 + "it = 1" + elements.1 + ")")
        }
        #expect(try holds(String(repeating: "not ", count: 100_000) + "age = 31"))
    }

    @Test(
        "Every text is a path of a predicate, and says itself again",
        arguments: [
            "a.b[0].c", "", "[0]", "a[0]b", "a..b", "\\", "a\\.b", "a[9][8]", "[x]", "a[0", "ä.ö",
            "a[99999999999999999999]", "a[]", "a[].b[0][]", "a[]b", "[]", "a\\[]",
        ])
    func paths(text: String) {
        let path = PropertyPath(text)
        #expect(PropertyPath(path.description) == path, "\(path)")
    }
}
