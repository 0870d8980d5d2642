internal import CofferSealing

extension Canonicalizer {
    /// Reads all of `input`, or says at which byte it is refused.
    mutating func scan(_ input: Span<UInt8>) throws(CofferError) {
        guard input.count <= JSONLimits.byteCount else {
            throw CofferError(.invalidJSON, "\(input.count) bytes, more than \(JSONLimits.byteCount)")
        }
        if input.count >= 3, input[0] == 0xEF, input[1] == 0xBB, input[2] == 0xBF {
            throw .invalidJSON("a byte order mark", at: 0)
        }
        var at = skipWhitespace(input, 0)
        if mode != .value, at >= input.count || input[at] != UInt8(ascii: "{") {
            throw .invalidJSON("no object", at: at)
        }
        var current: Container?
        while true {
            // A value starts here.
            guard at < input.count else { throw .invalidJSON("the end instead of a value", at: at) }
            guard valueCount < valueLimit else {
                isOverLimit = true
                throw .tooManyValues
            }
            valueCount &+= 1
            switch input[at] {
            case UInt8(ascii: "\""):
                at = try scanString(input, at)
            case UInt8(ascii: "{"):
                try open(isObject: true, at: at, in: &current)
                at = skipWhitespace(input, at + 1)
                if at >= input.count || input[at] != UInt8(ascii: "}") {
                    at = try scanKey(input, at, &current)
                    continue
                }
            case UInt8(ascii: "["):
                try open(isObject: false, at: at, in: &current)
                at = skipWhitespace(input, at + 1)
                if at >= input.count || input[at] != UInt8(ascii: "]") { continue }
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                at = try scanNumber(input, at)
            case UInt8(ascii: "t"): at = try scan("true", input, at)
            case UInt8(ascii: "f"): at = try scan("false", input, at)
            case UInt8(ascii: "n"): at = try scan("null", input, at)
            default: throw .invalidJSON("no value", at: at)
            }
            // It ends, and with it perhaps the containers around it.
            let isOver = try leaveContainers(input, &at, &current)
            if isOver { return }
        }
    }

    /// Goes on from the end of a value, or from the end of an empty container, to the start of the next value.
    ///
    /// - Returns: Whether there isn't one, and the input is over.
    @inline(__always)
    private mutating func leaveContainers(
        _ input: Span<UInt8>, _ at: inout Int, _ current: inout Container?
    ) throws(CofferError) -> Bool {
        while true {
            guard let container = current else {
                at = skipWhitespace(input, at)
                guard at == input.count else { throw .invalidJSON("something after the value", at: at) }
                return true
            }
            let isEmpty = written(at) == container.start + 1
            if !isEmpty, container.isObject { members[members.count - 1].end = UInt32(truncatingIfNeeded: written(at)) }
            at = skipWhitespace(input, at)
            guard at < input.count else { throw .invalidJSON("the end inside a container", at: at) }
            let byte = input[at]
            if byte == UInt8(ascii: ","), !isEmpty {
                at = skipWhitespace(input, at + 1)
                if container.isObject { at = try scanKey(input, at, &current) }
                return false
            }
            guard byte == (container.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
                throw .invalidJSON("neither a comma nor the end of the container", at: at)
            }
            at += 1
            if container.isObject { try close(container, input, endingAt: at) }
            current = outer.popLast()
        }
    }

    private mutating func open(isObject: Bool, at: Int, in current: inout Container?) throws(CofferError) {
        if let container = current {
            outer.append(container)
            guard outer.count < JSONLimits.depth else {
                throw .invalidJSON("more than \(JSONLimits.depth) containers in each other", at: at)
            }
        }
        current = Container(isObject: isObject, start: written(at), firstMember: members.count)
    }

    /// Leaves out white space.
    @inline(__always)
    mutating func skipWhitespace(_ input: Span<UInt8>, _ start: Int) -> Int {
        if start >= input.count || input[start] > UInt8(ascii: " ") { return start }
        return skipWhitespaceRun(input, start)
    }

    private mutating func skipWhitespaceRun(_ input: Span<UInt8>, _ start: Int) -> Int {
        var at = start
        while at < input.count, Self.isWhitespace(input[at]) { at += 1 }
        if at > start { skip(input, from: start, to: at) }
        return at
    }

    private static func isWhitespace(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
            || byte == UInt8(ascii: "\t")
    }

    private func scan(_ literal: StaticString, _ input: Span<UInt8>, _ start: Int) throws(CofferError) -> Int {
        guard input.hasBytes(of: literal, at: start) else {
            throw .invalidJSON("no value", at: start)
        }
        return start + literal.utf8CodeUnitCount
    }

    mutating func scanNumber(_ input: Span<UInt8>, _ start: Int) throws(CofferError) -> Int {
        var failure = start
        guard let literal = NumberLiteral(in: input, at: start, failure: &failure) else {
            throw .invalidJSON("no number", at: failure)
        }
        if literal.isPlain(in: input) { return literal.end }
        guard let value = literal.value(in: input) else {
            throw .invalidJSON("a number out of range", at: start)
        }
        var text: [UInt8] = []
        text.append(number: value)
        let isCanonical = haveSameBytes(text.span, input.extracting(start..<literal.end))
        if literal.isInteger, !isCanonical, value != 0 {
            // Beyond 64 bits only what canonical JSON itself writes for a Double: other digits would be lost silently.
            throw .invalidJSON("an integer out of range", at: start)
        }
        if !isCanonical {
            skip(input, from: start, to: literal.end)
            output.append(contentsOf: text)
        }
        return literal.end
    }
}
