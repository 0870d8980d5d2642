package import CofferSealing

/// Canonical JSON: RFC 8785, with the one addition that integers from −2^63 up to 2^64 stand in all their digits.
///
/// Only what has been checked and put in this form is of this type.
package struct CanonicalBody: Sendable, Hashable {
    /// The JSON in UTF-8, at most ``JSONLimits/byteCount`` bytes.
    package let bytes: [UInt8]

    init(canonical bytes: [UInt8]) throws(CofferError) {
        guard bytes.count <= JSONLimits.byteCount else {
            throw CofferError(.invalidJSON, "\(bytes.count) bytes in canonical form, more than \(JSONLimits.byteCount)")
        }
        self.bytes = bytes
    }

    /// Whether these bytes can be a stored document's: canonical JSON of nothing but content, of however many values.
    package static func isStored(_ bytes: [UInt8]) -> Bool {
        (try? DocumentBody(json: bytes, valueLimit: JSONLimits.storedValueCount))?.body.bytes == bytes
    }

    private init(empty: ()) { bytes = Array("{}".utf8) }

    /// An object without members: the body of a bare deletion.
    package static let empty = CanonicalBody(empty: ())
}

/// The keys that start with `_` and that a document may have at its top level.
enum ReservedKey: CaseIterable {
    case id, revision, isDeletion, attachments
    /// Only in what another database says of a revision.
    case revisions

    var text: StaticString {
        switch self {
        case .id: "_id"
        case .revision: "_rev"
        case .isDeletion: "_deleted"
        case .attachments: "_attachments"
        case .revisions: "_revisions"
        }
    }

    /// - Parameter isForeign: whether another database says it.
    init?(_ text: Span<UInt8>, isForeign: Bool = false) {
        for key in Self.allCases where key.text.utf8CodeUnitCount == text.count && (isForeign || key != .revisions) {
            if text.hasBytes(of: key.text, at: 0) {
                self = key
                return
            }
        }
        return nil
    }

    /// Whether the member belongs to the revision's content.
    var isContent: Bool { self == .attachments }
}

/// What a document's JSON says: its content, and what it says of itself in members that aren't content.
package struct DocumentBody: Sendable {
    /// The content: everything but `_id`, `_rev` and `_deleted`.
    package let body: CanonicalBody

    /// `_id`, unchecked.
    package private(set) var id: String?

    /// `_rev`, unchecked.
    package private(set) var revision: String?

    /// `_deleted`; nil without it.
    package private(set) var statedDeletion: Bool?

    /// Whether `_deleted` is there and true.
    package var isDeletion: Bool { statedDeletion == true }

    /// `_attachments`, which stands in ``body``, too.
    package private(set) var attachments: JSONObject?

    /// `_revisions`, unchecked. Only in what another database says.
    package private(set) var revisions: JSONObject?

    /// The document that `json` says, in UTF-8.
    ///
    /// - Throws: 400 (invalidJSON) with the offset of the byte where it is not JSON as RFC 8259 has it, or more than that:
    ///   no object, two members with the same key, a number out of range, a lone surrogate, deeper than
    ///   ``JSONLimits/depth``, larger than ``JSONLimits/byteCount``, more values than `valueLimit`; for another key that
    ///   starts with `_`, and for one of those above with a value of another type.
    ///
    /// - Parameters:
    ///   - isForeign: whether another database says it: then it may have `_revisions`, which isn't content.
    ///   - valueLimit: ``JSONLimits/storedValueCount`` for what is stored already.
    package init(
        json: [UInt8], isForeign: Bool = false, valueLimit: Int = JSONLimits.valueCount
    ) throws(CofferError) {
        var canonicalizer = Canonicalizer(isForeign ? .foreignDocument : .document, valueLimit: valueLimit)
        try canonicalizer.scan(json.span)
        let isCanonical = canonicalizer.hasChangedNothing
        body = try CanonicalBody(canonical: isCanonical ? json : canonicalizer.canonical(json.span))
        guard !canonicalizer.reserved.isEmpty else { return }
        let text = canonicalizer.normalized(json.span)
        for member in canonicalizer.reserved {
            try take(member.key, CanonicalReader.value(text.span.extracting(member.value)))
        }
    }

    /// The document that `properties` say.
    ///
    /// - Throws: 400 (invalidJSON) for a number that is not finite, for more depth than ``JSONLimits/depth``, for more
    ///   bytes than ``JSONLimits/byteCount``, for more values than `valueLimit`, and for keys that start with `_` as in JSON.
    ///
    /// - Parameters:
    ///   - isForeign: as in JSON.
    ///   - valueLimit: as in JSON.
    package init(
        _ properties: JSONObject, isForeign: Bool = false, valueLimit: Int = JSONLimits.valueCount
    ) throws(CofferError) {
        let (text, reserved) = try Self.parts(of: properties, isForeign: isForeign, valueLimit: valueLimit)
        try self.init(body: CanonicalBody(canonical: text), reserved: reserved)
    }

    /// The canonical JSON of an object's content, and its reserved members.
    static func parts(
        of properties: JSONObject, isForeign: Bool = false, valueLimit: Int = JSONLimits.valueCount
    ) throws(CofferError) -> (text: [UInt8], reserved: [(key: ReservedKey, value: JSONValue)]) {
        var content = properties
        var reserved: [(key: ReservedKey, value: JSONValue)] = []
        for member in properties.members where member.key.utf8.first == UInt8(ascii: "_") {
            guard let key = member.key.withBytes({ ReservedKey($0, isForeign: isForeign) }) else { throw .reservedKey }
            reserved.append((key, member.value))
            if !key.isContent { content[member.key] = nil }
        }
        return (try CanonicalWriter.text(of: .object(content), valueLimit: valueLimit), reserved)
    }

    init(body: CanonicalBody, reserved: [(key: ReservedKey, value: JSONValue)]) throws(CofferError) {
        self.body = body
        for (key, value) in reserved { try take(key, value) }
    }

    private mutating func take(_ key: ReservedKey, _ value: JSONValue) throws(CofferError) {
        switch (key, value) {
        case (.id, .string(let text)): id = text
        case (.revision, .string(let text)): revision = text
        case (.isDeletion, .bool(let flag)): statedDeletion = flag
        case (.attachments, .object(let object)): attachments = object
        case (.revisions, .object(let object)): revisions = object
        default: throw CofferError(.invalidJSON, "\(key.text) has a value of another type")
        }
    }
}

extension CofferError {
    static var unsavedBlob: CofferError {
        CofferError(.invalidAttachment, "a blob's content has to be saved before its JSON can be written")
    }
    static var notAnObject: CofferError { CofferError(.invalidJSON, "it is not an object") }
    static var reservedKey: CofferError {
        CofferError(.invalidJSON, "a key that starts with _ and isn't one of Coffer's")
    }
}

extension CanonicalBody {
    /// Whether a canonical body may refer to a blob: true wherever it does, and seldom elsewhere.
    ///
    /// In canonical JSON the two members' text stands exactly so, since `@` sorts before letters and quotes within strings
    /// are escaped. Searching costs a small part of what reading does.
    package static func mayHoldBlobs(_ body: [UInt8]) -> Bool { mayHoldBlobs(body.span) }

    /// The same of bytes that are lent.
    package static func mayHoldBlobs(_ body: Span<UInt8>) -> Bool { containsBytes(of: "@type\":\"blob\"", in: body) }

    /// Whether a canonical body may have `_attachments`: true wherever it does, and seldom elsewhere.
    package static func mayHoldAttachments(_ body: [UInt8]) -> Bool { mayHoldAttachments(body.span) }

    /// The same of bytes that are lent.
    package static func mayHoldAttachments(_ body: Span<UInt8>) -> Bool {
        containsBytes(of: "_attachments\":{", in: body)
    }

    /// Whether these bytes are an object in JSON, of however many values.
    package static func isObject(_ body: Span<UInt8>) -> Bool {
        guard !body.isEmpty, body[0] == UInt8(ascii: "{") else { return false }
        var canonicalizer = Canonicalizer(.value, valueLimit: .max)
        return (try? canonicalizer.scan(body)) != nil
    }
}
