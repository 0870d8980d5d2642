internal import Foundation

/// The digest property of an attachment, as Couchbase and CouchDB write it: `sha1-` and base64 of 20 bytes.
package enum SHA1Digest {
    package static func text(of bytes: [UInt8]) -> String { "sha1-" + Data(bytes).base64EncodedString() }

    /// The 20 bytes, or nil for another kind of digest.
    package static func bytes(of text: String) -> [UInt8]? {
        guard text.utf8.starts(with: "sha1-".utf8), let data = Data(base64Encoded: String(text.dropFirst(5))),
            data.count == 20
        else { return nil }
        // Base64 has several texts for the same bytes; only the usual one means them.
        return Self.text(of: Array(data)).utf8.elementsEqual(text.utf8) ? Array(data) : nil
    }
}
