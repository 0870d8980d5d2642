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
