/// Finds the records in the bytes of a file: the elements of an array, those of an object's only array, or one object
/// after the other. The content decides which it is.
struct RecordScanner {
    private enum Shape {
        /// The elements of the array that the file holds, or that is a member of the object that the file holds.
        case elements(isWrapped: Bool)
        /// Objects, each on lines of its own.
        case lines
        /// Everything was found.
        case finished
    }

    private var cursor: JSONCursor
    private var shape: Shape
    private var isFirst = true
    private var lastLine = 0

    /// Looks at what `bytes` are. `idField` is the member that holds the id of a record.
    ///
    /// A file that holds one object holds one record if that has an `idField`. If it has none, and exactly one of its
    /// members is an array, and that holds objects, then they are the records.
    init(_ bytes: Span<UInt8>, idField: String) throws(JSONCursor.Obstacle) {
        cursor = JSONCursor(bytes)
        cursor.skipWhitespace(bytes)
        switch cursor.peek(bytes) {
        case nil:
            shape = .finished
        case UInt8(ascii: "["):
            shape = .elements(isWrapped: false)
            try cursor.skip("[", bytes)
        case UInt8(ascii: "{"):
            shape = .lines
            if let array = try Self.wrappedArray(bytes, from: cursor, idField: idField) {
                cursor = JSONCursor(at: array)
                shape = .elements(isWrapped: true)
                try cursor.skip("[", bytes)
            }
        default:
            throw cursor.obstacle("neither an object nor an array of objects")
        }
    }

    /// The array that holds the records, if what begins at `cursor` is one object around it.
    private static func wrappedArray(
        _ bytes: Span<UInt8>, from start: JSONCursor, idField: String
    ) throws(JSONCursor.Obstacle) -> JSONCursor.Extent? {
        var cursor = start
        var arrays: [JSONCursor.Extent] = []
        var memberCount = 0
        var hasID = false
        try cursor.skipObject(bytes) { key, value in
            memberCount += 1
            hasID = hasID || JSONString(key).isEqual(to: idField, bytes)
            if bytes[value.range.lowerBound] == UInt8(ascii: "[") { arrays.append(value) }
        }
        cursor.skipWhitespace(bytes)
        guard cursor.peek(bytes) == nil, !hasID, arrays.count == 1 else { return nil }

        var element = JSONCursor(at: arrays[0])
        try element.skip("[", bytes)
        element.skipWhitespace(bytes)
        let first = element.peek(bytes)
        let isWrapper = first == UInt8(ascii: "{") || (first == UInt8(ascii: "]") && memberCount == 1)
        return isWrapper ? arrays[0] : nil
    }

    /// The next record, or nil if there isn't one left.
    mutating func next(_ bytes: Span<UInt8>) throws(JSONCursor.Obstacle) -> JSONCursor.Extent? {
        cursor.skipWhitespace(bytes)
        switch shape {
        case .elements(let isWrapped): return try nextElement(bytes, isWrapped: isWrapped)
        case .lines: return try nextLine(bytes)
        case .finished: return nil
        }
    }

    private mutating func nextElement(
        _ bytes: Span<UInt8>, isWrapped: Bool
    ) throws(JSONCursor.Obstacle) -> JSONCursor.Extent? {
        if cursor.skipIfPresent("]", bytes) {
            shape = .finished
            cursor.skipWhitespace(bytes)
            guard isWrapped || cursor.peek(bytes) == nil else { throw cursor.obstacle("something follows the array") }
            return nil
        }
        if !isFirst {
            try cursor.skip(",", bytes)
            cursor.skipWhitespace(bytes)
        }
        isFirst = false
        return try record(bytes)
    }

    private mutating func nextLine(_ bytes: Span<UInt8>) throws(JSONCursor.Obstacle) -> JSONCursor.Extent? {
        guard cursor.peek(bytes) != nil else {
            shape = .finished
            return nil
        }
        guard cursor.line > lastLine else { throw cursor.obstacle("something follows a record on its line") }
        let record = try record(bytes)
        lastLine = cursor.line
        return record
    }

    private mutating func record(_ bytes: Span<UInt8>) throws(JSONCursor.Obstacle) -> JSONCursor.Extent {
        guard cursor.peek(bytes) == UInt8(ascii: "{") else { throw cursor.obstacle("a record is not an object") }
        return try cursor.skipValue(bytes)
    }
}

/// Which member of a record is its id.
enum RecordID {
    /// The member of that name, which every record has.
    case member(String)
    /// The member `_id`, or an id made by the library where a record has none.
    case usual

    /// The name of the member.
    var field: String {
        switch self {
        case .member(let name): name
        case .usual: "_id"
        }
    }

    /// The id of `record`: a string, or an integer as it stands there.
    func value(
        of record: JSONCursor.Extent, _ bytes: Span<UInt8>
    ) throws(JSONCursor.Obstacle) -> String? {
        var found: JSONCursor.Extent?
        var cursor = JSONCursor(at: record)
        try cursor.skipObject(bytes) { key, value in
            if JSONString(key).isEqual(to: field, bytes) { found = value }
        }
        guard let found else {
            if case .usual = self { return nil }
            throw JSONCursor.Obstacle(line: record.line, message: "a record has no \(field)")
        }
        if let id = text(of: found, bytes) { return id }
        throw JSONCursor.Obstacle(line: found.line, message: "\(field) is neither a string nor an integer")
    }

    /// The bytes of `record` without its `_id`, where another member is the id: a document can't have two.
    func body(of record: JSONCursor.Extent, _ bytes: Span<UInt8>) throws(JSONCursor.Obstacle) -> [Range<Int>] {
        guard case .member(let name) = self, name != Self.usual.field else { return [record.range] }
        var cut: Range<Int>?
        var isOpen = false
        var lastEnd: Int?
        var cursor = JSONCursor(at: record)
        try cursor.skipObject(bytes) { key, value in
            let start = key.range.lowerBound - 1
            if isOpen, let first = cut { (cut, isOpen) = (first.lowerBound..<start, false) }
            if cut == nil, JSONString(key).isEqual(to: Self.usual.field, bytes) {
                // With the comma before it, or, if it is the first member, up to the next one.
                cut = (lastEnd ?? start)..<value.range.upperBound
                isOpen = lastEnd == nil
            }
            lastEnd = value.range.upperBound
        }
        guard let cut else { return [record.range] }
        return [record.range.lowerBound..<cut.lowerBound, cut.upperBound..<record.range.upperBound]
    }

    private func text(of value: JSONCursor.Extent, _ bytes: Span<UInt8>) -> String? {
        if bytes[value.range.lowerBound] == UInt8(ascii: "\"") {
            let range = (value.range.lowerBound + 1)..<(value.range.upperBound - 1)
            return JSONString(JSONCursor.Extent(range: range, line: value.line)).value(bytes)
        }
        let text = JSONString(value).value(bytes)
        let digits = text.map { $0.hasPrefix("-") ? $0.dropFirst() : $0[...] } ?? ""
        let isInteger = !digits.isEmpty && digits.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
        return isInteger ? text : nil
    }
}
