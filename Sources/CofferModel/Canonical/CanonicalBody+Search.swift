extension CanonicalBody {
    /// Whether a canonical body may refer to a blob: true wherever it does, and seldom elsewhere.
    ///
    /// In canonical JSON the two members' text stands exactly so, since `@` sorts before letters and quotes within strings
    /// are escaped. Searching costs a small part of what reading does.
    package static func mayHoldBlobs(_ body: [UInt8]) -> Bool { containsBytes(of: "@type\":\"blob\"", in: body) }

    /// Whether a canonical body may have `_attachments`: true wherever it does, and seldom elsewhere.
    package static func mayHoldAttachments(_ body: [UInt8]) -> Bool { containsBytes(of: "_attachments\":{", in: body) }
}
