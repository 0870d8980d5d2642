internal import CofferGzip
internal import CofferSealing
internal import Foundation

/// A content that stands in a revision's JSON, in base64, perhaps packed by gzip.
struct InlineContent {
    let text: String
    let isPacked: Bool
    /// As the other database says it: of the packed bytes, perhaps.
    let digest: String?
    /// As the other database says it: unpacked or, where a client packed it, as it is.
    let length: Int?
    /// What it is of.
    let subject: String

    /// The contents of one revision have no more bytes than that, unpacked: they are in memory together.
    static let byteLimit = 64 << 20

    /// The content itself, unpacked.
    ///
    /// - Parameter limit: more bytes than that are refused, before they are all unpacked.
    /// - Throws: ``SyncError`` 502 for what is not base64 or not gzip, for more than `limit`, and for a packed content with
    ///   another MD5, packed and unpacked, than is said of it.
    func data(upTo limit: Int) throws(SyncError) -> Data {
        guard let data = Data(base64Encoded: text) else { throw .garbage("\(subject) is not base64") }
        guard isPacked else {
            guard data.count <= limit else { throw tooLong() }
            return data
        }
        let decoder = GzipDecoder()
        decoder.append(Array(data))
        var unpacked = Data()
        while let piece = try decoder.nextPiece() {
            guard unpacked.count + piece.count <= limit else { throw tooLong() }
            unpacked += piece
        }
        guard decoder.isOver else { throw .garbage("\(subject) is packed, and ends before its end") }
        guard length.map({ $0 == unpacked.count || $0 == data.count }) ?? true else {
            throw .garbage("\(subject) has another length than it says")
        }
        if let digest, digest.hasPrefix("md5-"), try md5(data) != digest, try md5(unpacked) != digest {
            throw .garbage("\(subject) has another digest than it says")
        }
        return unpacked
    }

    private func tooLong() -> SyncError { .garbage("\(subject) is too long to stand in JSON") }

    private func md5(_ data: Data) throws(SyncError) -> String {
        guard var digest = try? StreamingDigest(.md5) else {
            throw SyncError(501, of: subject, "OpenSSL has no MD5 here, by which its content is checked")
        }
        digest.update(data.bytes)
        return "md5-" + Data(digest.finalize()).base64EncodedString()
    }

    /// Whether CouchDB packs contents of that type where nothing else was set. It doesn't say so where it unpacks one for
    /// JSON, and gives the digest of the packed bytes all the same.
    static func mayBeKeptPacked(_ contentType: String?) -> Bool {
        guard let type = contentType?.lowercased().prefix(while: { $0 != ";" && $0 != " " }) else { return false }
        return type.hasPrefix("text/")
            || ["application/javascript", "application/json", "application/xml"].contains(String(type))
    }
}
