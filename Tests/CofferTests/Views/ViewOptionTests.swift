import CofferSealing
import Foundation
import Testing

@testable import Coffer
@testable import CofferModel

@Suite("Rows of a view")
struct ViewOptionTests {
    let stores = TestStores()

    /// Rows with keys 0, 0, 1, 1, … of documents `a` to `t`, two each.
    private func view(_ database: Database) throws -> DatabaseView {
        try database.inTransaction {
            for (number, letter) in "abcdefghijklmnopqrst".enumerated() {
                try database.save(json: Data(#"{"n":\#(number / 2)}"#.utf8), withID: String(letter))
            }
        }
        let view = database.view(named: "v")
        try view.setMap(version: "1") { revision, emit in
            emit(try revision["n"] ?? .null, revision.documentID)
        }
        return view
    }

    private func ids(_ view: DatabaseView, _ change: (inout ViewOptions) -> Void) throws -> String {
        var options = ViewOptions()
        change(&options)
        return try view.rows(options).all.map(\.documentID).joined()
    }

    @Test("Rows of a view start and end where they are asked to, right there or not, forwards and backwards")
    func bounds() throws {
        let view = try view(try stores.open { $0.durability = .relaxed })
        // Every start, every end, with and without a document, both ways, against a filter by hand.
        let all = try view.rows().all.map { (key: $0.key, id: $0.documentID) }
        let places: [(JSONValue?, String?)] =
            [(nil, nil)] + ([-1, 0, 3, 3.5, 9, 10, "x"] as [JSONValue]).map { ($0, nil) }
            + [(3, "a"), (3, "g"), (3, "gg"), (3, "h"), (3, "z"), (0, "a"), (9, "t")]
        var count = 0
        for start in places {
            for end in places {
                for isDescending in [false, true] {
                    for (includesStart, includesEnd) in [(true, true), (false, true), (true, false), (false, false)] {
                        let found = try ids(view) { options in
                            (options.startKey, options.startDocumentID) = start
                            (options.endKey, options.endDocumentID) = end
                            options.isDescending = isDescending
                            (options.includesStart, options.includesEnd) = (includesStart, includesEnd)
                        }
                        let rows = isDescending ? all.reversed() : all
                        let expected = rows.filter { row in
                            isWithin(row, start, includesStart, isDescending ? -1 : 1)
                                && isWithin(row, end, includesEnd, isDescending ? 1 : -1)
                        }.map(\.id).joined()
                        #expect(found == expected, "\(start) \(end) \(isDescending) \(includesStart) \(includesEnd)")
                        count += 1
                    }
                }
            }
        }
        #expect(count == 15 * 15 * 8)
    }

    private func isWithin(
        _ row: (key: JSONValue, id: String), _ bound: (JSONValue?, String?), _ isIncluded: Bool, _ direction: Int
    ) -> Bool {
        guard let key = bound.0, let left = try? CollationKey(row.key).bytes, let right = try? CollationKey(key).bytes
        else {
            return true
        }
        if left != right { return left.lexicographicallyPrecedes(right) == (direction < 0) }
        guard let id = bound.1 else { return isIncluded }
        return row.id == id ? isIncluded : (row.id < id) == (direction < 0)
    }

    @Test("Rows of a view skip, end at a limit, and come by key lists, filters and orders of one's own")
    func counts() throws {
        let view = try view(try stores.open { $0.durability = .relaxed })
        #expect(try ids(view) { $0.limit = 3 } == "abc")
        #expect(try ids(view) { $0.limit = 0 } == "")
        #expect(try ids(view) { $0.skip = 17 } == "rst")
        #expect(try ids(view) { $0.skip = 30 } == "")
        #expect(try ids(view) { ($0.skip, $0.limit) = (.max, .max) } == "")
        #expect(try ids(view) { ($0.skip, $0.limit, $0.isDescending) = (1, 2, true) } == "sr")
        #expect(try ids(view) { $0.keys = [5, 0, 5, 77, "x"] } == "klabkl")
        #expect(try ids(view) { ($0.keys, $0.skip, $0.limit) = ([5, 0], 1, 2) } == "la")
        #expect(try ids(view) { $0.keys = [] } == "")
        #expect(try ids(view) { ($0.keys, $0.isDescending) = ([5, 0], true) } == "lkba")
        let isVowel: @Sendable (ViewRow) -> Bool = { "aeiou".contains($0.documentID) }
        #expect(try ids(view) { $0.filter = isVowel } == "aeio")
        #expect(try ids(view) { ($0.filter, $0.skip, $0.limit) = (isVowel, 1, 2) } == "ei")
        #expect(try ids(view) { $0.sort = { $0.documentID > $1.documentID } } == "tsrqponmlkjihgfedcba")
        #expect(
            try ids(view) {
                $0.sort = { $0.documentID > $1.documentID }
                ($0.filter, $0.skip, $0.limit) = (isVowel, 1, 2)
            } == "ie")
        struct Failure: Error {}
        #expect(thrown { try ids(view) { $0.filter = { _ in throw Failure() } } }?.code == .rejected)
        #expect(thrown { try ids(view) { $0.startKey = .number(JSONNumber(.nan)) } }?.code == .invalidJSON)
    }

    @Test("Rows of a view match by prefix, at the level that is asked for")
    func prefixes() throws {
        let database = try stores.open { $0.durability = .relaxed }
        let view = database.view(named: "v")
        try view.setMap(version: "1") { revision, emit in emit(try revision["key"] ?? .null) }
        let keys: [(String, JSONValue)] = [
            ("a", "ab"), ("b", "abc"), ("c", "b"), ("d", ["x", 1]), ("e", ["x", 2]), ("f", ["xy"]), ("g", ["y"]),
            ("h", [:]),
        ]
        for (id, key) in keys { try database.save(json: JSONValue.object(["key": key]).canonicalData(), withID: id) }
        func found(_ key: JSONValue, _ level: Int) throws -> String {
            try ids(view) { ($0.startKey, $0.endKey, $0.prefixMatchLevel) = (key, key, level) }
        }
        #expect(try found("ab", 0) == "a")
        #expect(try found("ab", 1) == "ab")
        #expect(try found("", 1) == "abc")
        #expect(try found(["x"], 1) == "de")
        #expect(try found(["x"], 2) == "def")
        #expect(try found([], 1) == "defg")
        #expect(
            try ids(view) { ($0.startKey, $0.endKey, $0.prefixMatchLevel, $0.isDescending) = (["x"], ["x"], 2, true) }
                == "fed")
    }

    @Test("Rows of a view reduce, by groups and altogether")
    func reductions() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try database.inTransaction {
            for number in 0..<2_500 {
                try database.save(
                    json: Data(#"{"day":[2026,\#(number % 3),\#(number % 7)],"n":\#(number)}"#.utf8),
                    withID: "d\(number)")
            }
        }
        func view(_ reduction: Reduction) throws -> DatabaseView {
            let view = database.view(named: "v")
            try view.setMap(version: "1", reduction: reduction) { revision, emit in
                emit(try revision["day"] ?? .null, try revision["n"] ?? .null)
            }
            return view
        }
        #expect(try view(.count).reduce() == 2_500)
        #expect(try view(.sum).reduce() == .number(JSONNumber(2_500 * 2_499 / 2)))
        let squares = (0..<2_500).reduce(0) { $0 + $1 * $1 }
        #expect(
            try view(.stats).reduce() == [
                "count": 2_500, "max": 2_499, "min": 0, "sum": .number(JSONNumber(2_500 * 2_499 / 2)),
                "sumsqr": .number(JSONNumber(squares)),
            ])
        var options = ViewOptions()
        options.groupLevel = 2
        let byMonth = try view(.count).reducedRows(options).all
        #expect(byMonth.map(\.key) == [[2026, 0], [2026, 1], [2026, 2]])
        #expect(byMonth.map(\.value) == [834, 833, 833])
        options.groupLevel = .max
        #expect(try view(.count).reducedRows(options).all.count == 21)
        (options.skip, options.limit, options.isDescending) = (1, 2, true)
        #expect(try view(.count).reducedRows(options).all.map(\.key) == [[2026, 2, 5], [2026, 2, 4]])
        options = ViewOptions()
        options.startKey = [2026, 1]
        options.endKey = [2026, 1]
        options.prefixMatchLevel = 1
        #expect(try view(.count).reduce(options) == 833)
        options.filter = { $0.value == 1 }
        #expect(try view(.count).reduce(options) == 1)
        options.startKey = [2027]
        options.endKey = [2027]
        #expect(try view(.count).reduce(options) == nil)
        // One of one's own sees no more than a thousand values at once, whatever their number.
        let most = Reduction { keys, values, isRereduce in
            #expect(values.count <= 1_000 && keys.count == (isRereduce ? 0 : values.count))
            return .number(JSONNumber(values.compactMap { $0.numberValue?.int64 }.max() ?? -1))
        }
        #expect(try view(most).reduce() == 2_499)
        struct Failure: Error {}
        #expect(thrown { try view(Reduction { _, _, _ in throw Failure() }).reduce() }?.code == .rejected)
    }

    @Test("Rows of a view are summed exactly as long as they are integers, and what is no number counts nothing")
    func sums() throws {
        let database = try stores.open { $0.durability = .relaxed }
        let view = database.view(named: "v")
        try view.setMap(version: "1", reduction: .sum) { revision, emit in
            for value in try revision["values"]?.arrayValue ?? [] { emit(revision.documentID, value) }
        }
        let cases: [(id: String, values: [JSONValue], sum: JSONValue)] = [
            ("a", [.number(JSONNumber(Int64.max)), 1, "x", nil, [1]], .number(JSONNumber(UInt64(1) << 63))),
            ("b", [.number(JSONNumber(UInt64.max)), -1], .number(JSONNumber(UInt64.max - 1))),
            ("c", [.number(JSONNumber(UInt64.max)), 1], .number(JSONNumber(0x1p64))), ("d", [0.5, 1], 1.5),
            ("e", ["x"], 0),
        ]
        for (id, values, _) in cases {
            try database.save(json: JSONValue.object(["values": .array(values)]).canonicalData(), withID: id)
        }
        var options = ViewOptions()
        options.groupLevel = .max
        #expect(try view.reducedRows(options).all.map(\.value) == cases.map(\.sum))
    }

    /// Keys longer than what stands in the index, with equal beginnings; ids too; keys that hardly fit anywhere.
    @Test("Rows of a view sort and come back whole however long, deep and odd their keys and ids are")
    func hostileKeys() throws {
        let database = try stores.open { $0.durability = .relaxed }
        let long = String(repeating: "k", count: 440)
        var deep: JSONValue = 1
        for _ in 0..<500 { deep = [deep] }
        var keys: [JSONValue] = [
            .string(long), .string(long + "a"), .string(long + "b"), .string(String(repeating: "k", count: 100_000)),
            .string(String(repeating: "k", count: 100_000) + "x"), .string(long.dropLast() + "z"), deep, "\0", "a\0b",
            .number(JSONNumber(Int64.min)), .number(JSONNumber(UInt64.max)), .number(JSONNumber(-0.0)), 0x1p63,
            "\u{10FFFF}",
            .array((0..<3_000).map { .number(JSONNumber($0)) }), .null,
            .string(String(repeating: "\u{1F600}", count: 110)),
        ]
        keys += (0..<300).map { .string(long + "\(1_000 + $0)") }
        let prefix = String(repeating: "i", count: 440)
        try database.inTransaction {
            for (number, key) in keys.enumerated().reversed() {
                for id in [
                    prefix + "\(number)x", prefix + String(repeating: "y", count: 400) + "\(number)", "s\(number)",
                ] {
                    try database.save(json: JSONValue.object(["k": key, "v": key]).canonicalData(), withID: id)
                }
            }
        }
        let view = database.view(named: "v")
        try view.setMap(version: "1") { revision, emit in
            let properties = try revision.properties
            emit(properties["k"] ?? .null, properties["v"] ?? .null)
            emit(properties["k"] ?? .null, "twice")
        }
        let expected = try keys.flatMap { key -> [(JSONValue, [UInt8])] in
            let bytes = try CollationKey(key).bytes
            return [(key, bytes), (key, bytes), (key, bytes)]
        }.sorted { $0.1.lexicographicallyPrecedes($1.1) }.map(\.0)
        let rows = try view.rows().all
        #expect(rows.count == 2 * expected.count)
        #expect(stride(from: 0, to: rows.count, by: 2).map { rows[$0].key } == expected)
        #expect(
            stride(from: 0, to: rows.count, by: 2).allSatisfy {
                rows[$0].value == rows[$0].key && rows[$0 + 1].value == "twice"
            })
        for (row, next) in zip(rows, rows.dropFirst()) where row.key == next.key {
            #expect(!next.documentID.utf8.lexicographicallyPrecedes(row.documentID.utf8))
        }
        var options = ViewOptions()
        options.isDescending = true
        #expect(try view.rows(options).all.map(\.documentID) == rows.map(\.documentID).reversed())
        options = ViewOptions()
        for key in keys.prefix(20) {
            options.keys = [key]
            #expect(try view.rows(options).all.count == 6)
            options.keys = nil
            (options.startKey, options.endKey) = (key, key)
            #expect(try view.rows(options).all.count == 6)
            options.includesStart = false
            #expect(try view.rows(options).all.isEmpty)
            options = ViewOptions()
        }
        #expect(try database.verify().isSound)
    }
}
