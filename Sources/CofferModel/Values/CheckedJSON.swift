package import CofferSealing

/// Text that is JSON, and how many values it holds: what it costs to read them is known before any memory is taken for them.
package struct CheckedJSON: Sendable {
    private let text: [UInt8]

    /// How many values there are, containers included.
    package let valueCount: Int

    /// Nil for more than `valueLimit` values, as soon as so many have been met.
    ///
    /// - Throws: `invalidJSON` (400) for what is not JSON, or has too many bytes or too much depth.
    package init?(_ json: [UInt8], valueLimit: Int) throws(CofferError) {
        var canonicalizer = Canonicalizer(.value, valueLimit: valueLimit)
        do throws(CofferError) {
            try canonicalizer.scan(json.span)
        } catch {
            if canonicalizer.isOverLimit { return nil }
            throw error
        }
        valueCount = canonicalizer.valueCount
        // Without a copy, where nothing needs to be put in another form for those who read it.
        text = canonicalizer.isNormalized ? json : canonicalizer.normalized(json.span)
    }

    /// The value that it says.
    package func value() throws(CofferError) -> JSONValue { try CanonicalReader.value(text.span) }

    /// All of it.
    package var root: Part { Part(text: text, range: 0..<text.count) }

    /// A value within the text, which need not be read to find others.
    package struct Part: Sendable {
        fileprivate let text: [UInt8]
        fileprivate let range: Range<Int>

        /// Its text, without white space, and with members in the order in which they came.
        package var bytes: [UInt8] { Array(text[range]) }

        /// The value that it says.
        package func value() throws(CofferError) -> JSONValue {
            try CanonicalReader.value(text.span.extracting(range))
        }

        /// Whether it is an object.
        package var isObject: Bool { text[range.lowerBound] == UInt8(ascii: "{") }

        /// Its elements; nil if it is not an array.
        package var elements: [Part]? {
            guard text[range.lowerBound] == UInt8(ascii: "[") else { return nil }
            var elements: [Part] = []
            var at = range.lowerBound + 1
            while at < range.upperBound - 1 {
                let end = text.span.endOfValue(from: at)
                elements.append(Part(text: text, range: at..<end))
                at = end + 1
            }
            return elements
        }

        /// The member of that name, which has no character that JSON escapes; nil if there isn't one, or this is not an object.
        package subscript(name: StaticString) -> Part? {
            guard isObject else { return nil }
            let span = text.span
            var at = range.lowerBound + 1
            while at < range.upperBound - 1 {
                let start = span.endOfValue(from: at) + 1
                let end = span.endOfValue(from: start)
                if start - at == name.utf8CodeUnitCount + 3, span.hasBytes(of: name, at: at + 1) {
                    return Part(text: text, range: start..<end)
                }
                at = end + 1
            }
            return nil
        }
    }
}

extension Span<UInt8> {
    /// Where the value ends that begins at `start`, in JSON that was checked and has no white space.
    fileprivate func endOfValue(from start: Int) -> Int {
        var (at, depth) = (start, 0)
        while at < count {
            switch self[at] {
            case UInt8(ascii: "\""):
                at = skipUnescaped(from: at + 1)
                while at < count, self[at] == UInt8(ascii: "\\") { at = skipUnescaped(from: at + 2) }
                at += 1
                if depth == 0 { return at }
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                at += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return at }
                depth -= 1
                at += 1
                if depth == 0 { return at }
            case UInt8(ascii: ","), UInt8(ascii: ":"):
                if depth == 0 { return at }
                at += 1
            default: at += 1
            }
        }
        return at
    }
}
