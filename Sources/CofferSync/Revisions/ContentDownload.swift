internal import CofferSealing
internal import Foundation
package import Coffer

/// A content on its way from another database into this one: checked before anything names it.
///
/// What arrives may be packed. Digests of CouchDB are those of the packed bytes, where it keeps them packed.
package struct ContentDownload: Sendable {
    package let subject: String
    /// What the other database says: `md5-…` or `sha1-…`. Others can't be checked.
    package let digest: String?
    /// The length of the unpacked content; nil where it is not known.
    package let length: Int?
    package let isPacked: Bool

    package init(subject: String, digest: String?, length: Int?, isPacked: Bool) {
        self.subject = subject
        self.digest = digest
        self.length = length
        self.isPacked = isPacked
    }

    /// Writes the content into `database`, and checks it.
    ///
    /// - Parameters:
    ///   - limit: more bytes than that are a 413. Default: nil, as many as fit on the disk.
    ///   - progress: told of the bytes unpacked so far.
    /// - Returns: the content, which stays only if a revision with it is saved.
    /// - Throws: ``SyncError`` 502 for another digest or length, and for what can't be unpacked; what the stream throws.
    package func receive(
        _ stream: ByteStream, into database: Database, upTo limit: Int? = nil, progress: (Int) -> Void = { _ in }
    ) async throws -> Blob {
        let content = try database.beginContent()
        do {
            var check = StreamingDigest(digest?.hasPrefix("md5-") == true ? .md5 : .sha1)
            // Packed bytes are digested as they arrive.
            let decoder = isPacked ? GzipDecoder() : nil
            var byteCount = 0
            func write(_ bytes: [UInt8]) throws {
                byteCount += bytes.count
                // What unpacks to more than it should is stopped here, not on a full disk.
                guard length.map({ byteCount <= $0 }) ?? true else { throw wrongLength(byteCount) }
                guard limit.map({ byteCount <= $0 }) ?? true else {
                    throw SyncError(413, of: subject, "more than \(limit ?? 0) bytes")
                }
                try content.write(bytes)
                progress(byteCount)
            }
            while let piece = try await stream.next() {
                try Task.checkCancellation()
                check.update(piece)
                guard let decoder else {
                    try write(piece)
                    continue
                }
                decoder.append(piece)
                while let unpacked = try decoder.next() { try write(unpacked) }
            }
            guard decoder?.isOver ?? true else {
                throw SyncError.garbage("a packed content that ends before its end", of: subject)
            }
            guard length.map({ byteCount == $0 }) ?? true else { throw wrongLength(byteCount) }
            let found = Data(check.finalize()).base64EncodedString()
            if let digest, let kind = ["md5-", "sha1-"].first(where: digest.hasPrefix) {
                guard digest.dropFirst(kind.count) == found else {
                    throw SyncError.garbage("its content has another digest than the server says", of: subject)
                }
            }
            return try content.finish()
        } catch {
            content.cancel()
            throw error
        }
    }

    private func wrongLength(_ byteCount: Int) -> SyncError {
        .garbage("its content has another length than the \(length ?? 0) bytes that the server says", of: subject)
    }
}
