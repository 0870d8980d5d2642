@testable import CofferModel
@testable import CofferSealing
@testable import Records

/// What `coffer import` does with a file: finding its records, their ids and their bodies.
enum RecordsHarness {
    @Sendable static func run(_ input: [UInt8]) throws {
        for id in [RecordID.usual, .member("id")] {
            let records: [JSONCursor.Extent]
            do throws(JSONCursor.Obstacle) {
                records = try Self.records(input, idField: id.field)
            } catch {
                let lines = input.count { $0 == UInt8(ascii: "\n") } + 1
                expect((1...lines).contains(error.line), "an obstacle on line \(error.line) of \(lines)")
                expect(elements(of: input) == nil, "an array of objects is refused")
                continue
            }
            checkPlaces(records, in: input)
            if let elements = elements(of: input) {
                expect(records.map { value(input[$0.range]) } == elements, "other records than the array has")
            }
            for record in records { try check(record, id, in: input) }
        }
    }

    private static func records(_ input: [UInt8], idField: String) throws(JSONCursor.Obstacle) -> [JSONCursor.Extent] {
        var scanner = try RecordScanner(input.span, idField: idField)
        var records: [JSONCursor.Extent] = []
        while let record = try scanner.next(input.span) { records.append(record) }
        return records
    }

    private static func checkPlaces(_ records: [JSONCursor.Extent], in input: [UInt8]) {
        var (end, line) = (0, 1)
        for record in records {
            expect(record.range.lowerBound >= end && record.range.upperBound <= input.count, "records overlap")
            expect(
                input[record.range.lowerBound] == UInt8(ascii: "{")
                    && input[record.range.upperBound - 1] == UInt8(ascii: "}"), "a record is not an object")
            line += input[end..<record.range.lowerBound].count { $0 == UInt8(ascii: "\n") }
            expect(record.line == line, "a record is on line \(line) and not \(record.line)")
            line += input[record.range].count { $0 == UInt8(ascii: "\n") }
            end = record.range.upperBound
        }
    }

    /// The id and the body of a record that is JSON are those that its value has.
    private static func check(_ record: JSONCursor.Extent, _ id: RecordID, in input: [UInt8]) throws {
        let object = value(input[record.range])?.objectValue
        let found = Result { () throws(JSONCursor.Obstacle) in try id.value(of: record, input.span) }
        let body = Result { () throws(JSONCursor.Obstacle) in try id.body(of: record, input.span) }
        guard let object else { return }

        let member = object[id.field]
        switch member {
        case .string(let text)?: expect((try? found.get())?.utf8.elementsEqual(text.utf8) == true, "another id")
        case nil: if case .usual = id { expect((try? found.get()) == .some(nil), "an id out of nothing") }
        case .number(let number)?:
            if let text = (try? found.get()) ?? nil { expect(number.description == text || text.hasPrefix("-0"), text) }
        default: expect((try? found.get()) == nil, "an id of another type")
        }
        var expected = object
        if case .member = id { expected["_id"] = nil }
        let bytes = try body.get().flatMap { Array(input[$0]) }
        expect(value(bytes[...]) == .object(expected), "the body is another than the record without its _id")
    }

    /// The elements of an array of objects; nil where the bytes are something else.
    private static func elements(of input: [UInt8]) -> [JSONValue]? {
        guard case .array(let elements)? = value(input[...]), elements.allSatisfy({ $0.objectValue != nil }) else {
            return nil
        }
        return elements
    }

    private static func value(_ bytes: ArraySlice<UInt8>) -> JSONValue? {
        let bytes = Array(bytes)
        var canonicalizer = Canonicalizer(.value)
        guard (try? canonicalizer.scan(bytes.span)) != nil else { return nil }
        return try? CanonicalReader.value(canonicalizer.canonical(bytes.span).span)
    }
}
