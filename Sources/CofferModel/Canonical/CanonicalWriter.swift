internal import CofferSealing

/// Writes JSON values as canonical JSON.
enum CanonicalWriter {
    /// The canonical JSON of `object`.
    static func text(of object: JSONObject) throws(CofferError) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(512)
        try append(object, to: &text, depth: 1)
        return text
    }

    /// The canonical JSON of `value`.
    static func text(of value: JSONValue) throws(CofferError) -> [UInt8] {
        var text: [UInt8] = []
        try append(value, to: &text, depth: 1)
        return text
    }

    /// Appends `value`, which is at that depth if it is a container.
    static func append(_ value: JSONValue, to text: inout [UInt8], depth: Int) throws(CofferError) {
        switch value {
        case .null: text.append(ascii: "null")
        case .bool(let flag): text.append(ascii: flag ? "true" : "false")
        case .number(let number):
            guard number.isFinite else { throw .notFinite }
            text.append(number: number)
        case .string(let string): string.withBytes { text.append(quoting: $0) }
        case .array(let elements): try append(elements, to: &text, depth: depth)
        case .object(let object): try append(object, to: &text, depth: depth)
        }
    }

    private static func append(_ elements: [JSONValue], to text: inout [UInt8], depth: Int) throws(CofferError) {
        try check(depth)
        text.append(UInt8(ascii: "["))
        for at in elements.indices {
            if at > 0 { text.append(UInt8(ascii: ",")) }
            try append(elements[at], to: &text, depth: depth + 1)
        }
        text.append(UInt8(ascii: "]"))
    }

    private static func append(_ object: JSONObject, to text: inout [UInt8], depth: Int) throws(CofferError) {
        try check(depth)
        text.append(UInt8(ascii: "{"))
        for at in object.canonicalOrder() {
            if text.last != UInt8(ascii: "{") { text.append(UInt8(ascii: ",")) }
            object.members[at].key.withBytes { text.append(quoting: $0) }
            text.append(UInt8(ascii: ":"))
            try append(object.members[at].value, to: &text, depth: depth + 1)
        }
        text.append(UInt8(ascii: "}"))
    }

    private static func check(_ depth: Int) throws(CofferError) {
        guard depth <= JSONLimits.depth else { throw .tooDeep }
    }
}

extension JSONObject {
    /// The places of the members, in the order of canonical JSON.
    fileprivate func canonicalOrder() -> [Int] {
        var order = Array(members.indices)
        order.sort { left, right in
            members[left].key.withBytes { left in members[right].key.withBytes { compareAsUTF16(left, $0) < 0 } }
        }
        return order
    }
}
