internal import CofferSealing

/// Writes JSON values as canonical JSON. Nothing recurses, so that no depth overflows the stack.
enum CanonicalWriter {
    /// An array or an object that is being written.
    private struct Container {
        let content: Content
        /// The places of an object's members in the order they are to have; nil if they stand in it.
        let order: [Int]?
        var next = 0

        enum Content {
            case array([JSONValue])
            case object(JSONObject)
        }

        /// How many elements or members it has.
        var count: Int {
            switch content {
            case .array(let elements): elements.count
            case .object(let object): object.count
            }
        }

        init(_ elements: [JSONValue]) {
            content = .array(elements)
            order = nil
        }

        init(_ object: JSONObject) {
            content = .object(object)
            order = object.canonicalOrder()
        }
    }

    /// The canonical JSON of `value`.
    ///
    /// - Parameters:
    ///   - valueLimit: more values are refused. Default: as many as there are, for what is given out.
    ///   - frameDepth: how many containers may be around what is as deep as a document. Default: 0.
    static func text(
        of value: JSONValue, valueLimit: Int = .max, frameDepth: Int = 0
    ) throws(CofferError) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(512)
        try append(value, to: &text, depth: 1 - frameDepth, valueLimit: valueLimit)
        return text
    }

    /// Appends `value`, which is at that depth if it is a container.
    ///
    /// - Returns: How many values it is, itself included.
    @discardableResult
    static func append(
        _ value: JSONValue, to text: inout [UInt8], depth: Int, valueLimit: Int = .max
    ) throws(CofferError) -> Int {
        var open: [Container] = []
        var value = value
        var valueCount = 1
        while true {
            if let container = try start(value, &text) {
                guard depth + open.count <= JSONLimits.depth else { throw .tooDeep }
                // All of it, before any of it is written.
                valueCount += container.count
                guard valueCount <= valueLimit else { throw .tooManyValues }
                open.append(container)
            }
            // The next element or member of the innermost container that has one left.
            while true {
                guard !open.isEmpty else { return valueCount }
                if let next = step(&open[open.count - 1], &text) {
                    value = next
                    break
                }
                open.removeLast()
            }
        }
    }

    /// Writes a value that isn't in parts, or the start of one that is.
    @inline(__always)
    private static func start(_ value: JSONValue, _ text: inout [UInt8]) throws(CofferError) -> Container? {
        switch value {
        case .null: text.append(ascii: "null")
        case .bool(let flag): text.append(ascii: flag ? "true" : "false")
        case .number(let number):
            guard number.isFinite else { throw .notFinite }
            text.append(number: number)
        case .string(let string): string.withBytes { text.append(quoting: $0) }
        case .array(let elements):
            text.append(UInt8(ascii: "["))
            return Container(elements)
        case .object(let object):
            text.append(UInt8(ascii: "{"))
            return Container(object)
        case .blob(let blob):
            guard let reference = blob.reference else { throw .unsavedBlob }
            text.append(UInt8(ascii: "{"))
            return Container(reference.object)
        }
        return nil
    }

    /// Goes on to the next element or member, and returns its value; or ends the container.
    @inline(__always)
    private static func step(_ container: inout Container, _ text: inout [UInt8]) -> JSONValue? {
        let place = container.next
        container.next += 1
        switch container.content {
        case .array(let elements):
            guard place < elements.count else {
                text.append(UInt8(ascii: "]"))
                return nil
            }
            if place > 0 { text.append(UInt8(ascii: ",")) }
            return elements[place]
        case .object(let object):
            guard place < object.count else {
                text.append(UInt8(ascii: "}"))
                return nil
            }
            if place > 0 { text.append(UInt8(ascii: ",")) }
            let member = object.members[container.order?[place] ?? place]
            member.key.withBytes { text.append(quoting: $0) }
            text.append(UInt8(ascii: ":"))
            return member.value
        }
    }
}

extension JSONObject {
    /// The places of the members in the order of canonical JSON, or nil if they have it.
    fileprivate func canonicalOrder() -> [Int]? {
        guard !hasCanonicalOrder else { return nil }
        // By the first eight bytes, which most often tell.
        var order = members.enumerated().map { place, member in
            (prefix: member.key.withBytes { MemberKey.prefix(of: $0) }, place: place)
        }
        order.sort { left, right in
            if left.prefix != right.prefix { return left.prefix < right.prefix }
            return Self.order(members[left.place], members[right.place]) < 0
        }
        return order.map(\.place)
    }
}
