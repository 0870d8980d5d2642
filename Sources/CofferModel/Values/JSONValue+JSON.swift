package import CofferSealing

extension JSONValue {
    /// The value that `json` says, in UTF-8.
    ///
    /// - Throws: `invalidJSON` (400), as for a document: for more values than ``JSONLimits/valueCount``, too.
    package init(json: some Sequence<UInt8>) throws(CofferError) {
        guard let text = try CheckedJSON(Array(json), valueLimit: JSONLimits.valueCount) else { throw .tooManyValues }
        self = try text.value()
    }

    /// The value that ``canonicalJSON()`` wrote.
    ///
    /// - Throws: `damaged` (500), where it can't have.
    package init(canonicalJSON json: [UInt8]) throws(CofferError) { self = try CanonicalReader.value(json.span) }

    /// The value in canonical form.
    ///
    /// - Throws: `invalidJSON` (400) for a number that is not finite, and for more depth than JSON may have;
    ///   `invalidAttachment` (400) for a blob that was not saved.
    package func canonicalJSON() throws(CofferError) -> [UInt8] { try CanonicalWriter.text(of: self) }
}

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
}

/// What may not be there, such as a property, and what is in it: `document["address"]["lines"][0]` instead of
/// `document["address"]?["lines"]?[0]`.
extension Optional<JSONValue> {
    /// The member of that key, or nil if the value is missing, is not an object, or has no such member.
    public subscript(key: String) -> JSONValue? {
        flatMap { value in value[key] }
    }

    /// The element at that place, or nil if the value is missing, is not a list, or is shorter.
    public subscript(index: Int) -> JSONValue? {
        flatMap { value in value[index] }
    }
}
