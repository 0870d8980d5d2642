internal import CofferGzip
internal import CofferSealing
internal import Foundation
package import Coffer

/// A content on its way from another database into this one: checked before anything names it.
///
/// What arrives may be packed. MD5s of CouchDB are those of the packed bytes, where it keeps them packed, and so is the length
/// where a client packed them (Content-Encoding); a SHA-1 is that of the content itself.
package struct ContentDownload: Sendable {
    package let subject: String
    /// What the other database says: `md5-…` or `sha1-…`. Others can't be checked.
    package let digest: String?
    /// The length of the content, or of what it is packed in; nil if it is not known.
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
    /// - Throws: ``SyncError`` 502 for another digest or length, and for what can't be unpacked, 501 where it can't be checked;
    ///   what the stream throws.
    package func receive(
        _ stream: ByteStream, into database: Database, upTo limit: Int? = nil, progress: (Int) -> Void = { _ in }
    ) async throws -> Blob {
        let arriving = try ArrivingContent(self, upTo: limit) { try database.beginContent() }
        do {
            while let piece = try await stream.next() {
                try Task.checkCancellation()
                progress(try await arriving.take(piece))
            }
            return try await arriving.finish()
        } catch {
            arriving.cancel()
            throw error
        }
    }
}

/// What has come of a content so far: encrypted in the store, with what it is checked by. Goes on where it stopped, for as
/// long as it is kept.
package actor ArrivingContent {
    private let download: ContentDownload
    private let content: IncomingContent
    private let limit: Int?
    private let decoder: GzipDecoder?
    /// Of the bytes as they arrive. The store makes the SHA-1 anyway.
    private var md5: StreamingDigest?
    /// Of the content, where that arrives packed: what stands between may have packed what the other database has not.
    private var unpackedMD5: StreamingDigest?
    /// Unpacked.
    private(set) var byteCount = 0
    /// As they arrived.
    private var arrivedByteCount = 0

    /// Deflate packs no bytes into less than a 1,032nd (RFC 1951: 258 bytes take two bits at least).
    private static let greatestRatio = 1032

    /// - Parameters:
    ///   - limit: more bytes than that are a 413; nil for as many as fit on the disk.
    ///   - begin: begins the content in a store, once it is known that it can be checked.
    /// - Throws: ``SyncError`` 501, about this content alone, where its digest is an MD5 and this system's OpenSSL has none;
    ///   what `begin` throws.
    init(_ download: ContentDownload, upTo limit: Int? = nil, _ begin: () throws -> IncomingContent) throws {
        self.download = download
        self.limit = limit
        decoder = download.isPacked ? GzipDecoder() : nil
        if download.digest?.hasPrefix("md5-") == true {
            do throws(CofferError) {
                md5 = try StreamingDigest(.md5)
                unpackedMD5 = download.isPacked ? try StreamingDigest(.md5) : nil
            } catch {
                throw SyncError(501, of: download.subject, "OpenSSL has no MD5 here, by which its content is checked")
            }
        }
        content = try begin()
    }

    /// Takes the next bytes, as they arrive.
    ///
    /// - Returns: how many there are so far, unpacked.
    /// - Throws: ``SyncError`` 502 for more than there should be, and for what can't be unpacked; 413.
    @discardableResult
    func take(_ piece: [UInt8]) throws -> Int {
        md5?.update(piece)
        arrivedByteCount += piece.count
        guard let decoder else {
            try write(piece)
            return byteCount
        }
        decoder.append(piece)
        while let unpacked = try decoder.nextPiece() { try write(unpacked) }
        return byteCount
    }

    private func write(_ bytes: [UInt8]) throws {
        byteCount += bytes.count
        // What unpacks to more than it should is stopped here, not on a full disk.
        if let length = download.length {
            let mayBePacked = decoder != nil && arrivedByteCount <= length
            guard byteCount <= length || (mayBePacked && byteCount / Self.greatestRatio <= length) else {
                throw wrongLength()
            }
        }
        guard limit.map({ byteCount <= $0 }) ?? true else {
            throw SyncError(413, of: download.subject, "more than \(limit ?? 0) bytes")
        }
        unpackedMD5?.update(bytes)
        try content.write(bytes)
    }

    /// Ends the content.
    ///
    /// - Throws: ``SyncError`` 502 where it is not what the other database says.
    func finish() throws -> Blob {
        guard decoder?.isOver ?? true else {
            throw SyncError.garbage("a packed content that ends before its end", of: download.subject)
        }
        if let length = download.length {
            guard byteCount == length || (decoder != nil && arrivedByteCount == length) else { throw wrongLength() }
        }
        let found = [md5?.finalize(), unpackedMD5?.finalize()].compactMap { $0 }
        let blob = try content.finish()
        if let digest = download.digest, digest.hasPrefix("md5-") || digest.hasPrefix("sha1-") {
            let digests = found.isEmpty ? [blob.digest] : found.map { "md5-" + Data($0).base64EncodedString() }
            guard digests.contains(digest) else {
                throw SyncError.garbage("its content has another digest than the server says", of: download.subject)
            }
        }
        return blob
    }

    /// Gives it up. Nothing of it stays on the disk.
    nonisolated func cancel() { content.cancel() }

    private func wrongLength() -> SyncError {
        .garbage(
            "its content has another length than the \(download.length ?? 0) bytes that the server says",
            of: download.subject)
    }
}
