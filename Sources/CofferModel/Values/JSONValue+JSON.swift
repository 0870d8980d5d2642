package import CofferSealing

extension JSONValue {
    /// The value that `json` says, in UTF-8.
    ///
    /// - Throws: `invalidJSON` (400), as for a document.
    package init(json: some Sequence<UInt8>) throws(CofferError) {
        let json = Array(json)
        var canonicalizer = Canonicalizer(.value)
        try canonicalizer.scan(json.span)
        self = try CanonicalReader.value(canonicalizer.normalized(json.span).span)
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
