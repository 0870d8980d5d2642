internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import CofferVault
internal import Foundation
internal import Synchronization

/// The content of an attachment or blob, wherever it is: in memory, still to be read, written but not saved, or saved.
///
/// A save moves it on, for everybody who holds it. Safe from any thread.
final class Content: BlobContent {
    enum Place: Sendable {
        case memory(Data)
        /// Read when it is saved.
        case source(any ContentSource)
        /// In the store's `incoming/`; gone with its last reference unless it is saved.
        case staged(StagedAttachment, in: Storage)
        case saved(in: Storage, digest: String, byteCount: Int)
    }

    private struct State {
        var place: Place
        var digest: String?
        var byteCount: Int?
    }

    private let state: Lock<State>

    /// Content that is in memory.
    init(_ data: Data) {
        state = Lock(State(place: .memory(data), digest: nil, byteCount: data.count))
    }

    /// Content that is read when it is saved.
    init(_ source: any ContentSource) {
        state = Lock(State(place: .source(source), digest: nil, byteCount: nil))
    }

    /// Content that was written already.
    init(_ staged: StagedAttachment, in storage: Storage) {
        state = Lock(
            State(
                place: .staged(staged, in: storage), digest: SHA1Digest.text(of: staged.digest.sha1),
                byteCount: staged.digest.byteCount))
    }

    /// Content that a revision of `storage` names.
    init(in storage: Storage, digest: String, byteCount: Int) {
        state = Lock(
            State(
                place: .saved(in: storage, digest: digest, byteCount: byteCount), digest: digest, byteCount: byteCount))
    }

    var place: Place {
        state.withLock { state in
            // Saved meanwhile, by whichever revision was committed first.
            if case .staged(let staged, let storage) = state.place, staged.isSaved, let digest = state.digest,
                let byteCount = state.byteCount
            {
                state.place = .saved(in: storage, digest: digest, byteCount: byteCount)
            }
            return state.place
        }
    }

    /// The digest property; computed when it is first asked for, where the content is in memory.
    var digest: String? {
        state.withLock { state in
            if state.digest == nil, case .memory(let data) = state.place {
                state.digest = (try? Digest.sha1(of: Array(data))).map { SHA1Digest.text(of: $0) }
            }
            return state.digest
        }
    }

    var length: Int? { state.withLock { $0.byteCount } }

    // MARK: Saving

    /// Makes sure that `storage` has the content, saved or in its `incoming/`, and says what is there.
    ///
    /// - Returns: what a save has to install; nil if it is saved there already.
    /// - Throws: what reading a source throws, as the cause of `invalidAttachment` (400); `noSpace` (507).
    func stage(in storage: Storage) throws(CofferError) -> StagedAttachment? {
        switch place {
        case .saved(let home, _, _) where home === storage:
            return nil
        case .staged(let staged, let home) where home === storage:
            return try storage.current(staged)
        case .memory(let data):
            return noteStaged(try storage.stage(data), storage)
        case .source(let source):
            return noteStaged(try storage.stage(source), storage)
        case .staged, .saved:
            // Of another database: copied, and this stays where it is.
            guard let reader = try reader(subject: "an attachment") else {
                throw CofferError(.attachmentNotFound, "its content is not in this database, so it can't be copied")
            }
            return try storage.stage(ReaderSource(reader))
        }
    }

    private func noteStaged(_ staged: StagedAttachment, _ storage: Storage) -> StagedAttachment {
        state.withLock { state in
            state.digest = SHA1Digest.text(of: staged.digest.sha1)
            state.byteCount = staged.digest.byteCount
            // Bytes in memory stay there: they may be saved to another database, too.
            if case .source = state.place { state.place = .staged(staged, in: storage) }
        }
        return staged
    }

    // MARK: Reading

    /// A reader of the content, or nil if it was never downloaded.
    ///
    /// - Throws: `damaged` (500) when it should be here and is missing or was changed; `closed` (500).
    func reader(subject: String, onlyForReadingWhole: Bool = false) throws(CofferError) -> AttachmentReader? {
        switch place {
        case .memory, .source:
            return nil
        case .staged(let staged, _):
            return try staged.open()
        case .saved(let storage, let digest, let byteCount):
            let reader = try storage.openAttachment(
                AttachmentKey(digest), subject: subject, onlyForReadingWhole: onlyForReadingWhole)
            guard reader.map({ $0.byteCount == byteCount }) ?? true else {
                throw CofferError(
                    .damaged, of: subject, "the length of its content differs from what its document says")
            }
            return reader
        }
    }

    /// Whether the content can be read. Neither opens nor reads it.
    var isAvailable: Bool {
        switch place {
        case .memory, .staged: true
        case .source(let source): source.canBeReadAgain
        case .saved(let storage, let digest, _): storage.hasContent(AttachmentKey(digest))
        }
    }

    /// The whole content, or nil if it was never downloaded, or is a stream that was not saved.
    func data(subject: String) throws(CofferError) -> Data? {
        switch place {
        case .memory(let data): return data
        case .source(let source):
            guard source.canBeReadAgain else { return nil }
            var data = Data()
            unsafe try source.read { (bytes: UnsafeRawBufferPointer) throws(CofferError) in
                unsafe data.append(contentsOf: bytes)
            }
            return data
        case .staged, .saved:
            guard let reader = try reader(subject: subject, onlyForReadingWhole: true) else { return nil }
            return try unsafe Data(byteCount: reader.byteCount) { (bytes) throws(CofferError) in
                try unsafe reader.readWhole(into: bytes, checking: .tags)
            }
        }
    }

    /// Part of the content.
    ///
    /// - Throws: `invalidArgument` (400) for a range beyond its end.
    func data(in range: Range<Int>, subject: String) throws(CofferError) -> Data? {
        if case .memory(let data) = place {
            try Self.check(range, data.count, subject)
            return data.subdata(in: (data.startIndex + range.lowerBound)..<(data.startIndex + range.upperBound))
        }
        if case .source = place {
            // Read again, which only what is read once and stays can't.
            guard let data = try data(subject: subject) else { return nil }
            try Self.check(range, data.count, subject)
            return data.subdata(in: range)
        }
        guard let reader = try reader(subject: subject) else { return nil }
        try Self.check(range, reader.byteCount, subject)
        return try unsafe Data(byteCount: range.count) { (bytes) throws(CofferError) in
            try unsafe reader.read(from: range.lowerBound, into: bytes)
        }
    }

    private static func check(_ range: Range<Int>, _ count: Int, _ subject: String) throws(CofferError) {
        guard range.lowerBound >= 0, range.upperBound <= count else {
            throw CofferError(.invalidArgument, of: subject, "bytes \(range) of \(count)")
        }
    }

    /// The file of content that is saved in an unencrypted store.
    var fileURL: URL? {
        guard case .saved(let storage, let digest, _) = place,
            let sha1 = storage.availableContent(AttachmentKey(digest))
        else { return nil }
        // Asked once: the key may be changed at this moment.
        let attachments = storage.attachments
        return attachments.isEncrypted ? nil : URL(filePath: attachments.path(of: sha1))
    }
}

extension Data {
    /// The bytes that `fill` writes: all of them, unless it throws. They are written where they stay, and not zeroed before.
    fileprivate init(
        byteCount: Int, fill: (UnsafeMutableRawBufferPointer) throws(CofferError) -> Void
    ) throws(CofferError) {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount, alignment: 16)
        do throws(CofferError) {
            try unsafe fill(bytes)
        } catch {
            unsafe bytes.deallocate()
            throw error
        }
        guard byteCount > 0, let start = bytes.baseAddress else {
            unsafe bytes.deallocate()
            self.init()
            return
        }
        unsafe self.init(
            bytesNoCopy: start, count: byteCount, deallocator: .custom { start, _ in unsafe start.deallocate() })
    }
}

extension Storage {
    /// Makes bytes content that can be saved.
    ///
    /// Few bytes inside a transaction of the calling thread stay in memory, as ciphertext where the store is encrypted. They
    /// get a file when the transaction needs one, and by its end.
    func stage(_ data: Data) throws(CofferError) -> StagedAttachment {
        let ownAttachments = ifWriting { $0.state.depth > 0 ? $0.files.attachments : nil } ?? nil
        guard let attachments = ownAttachments, attachments.canSeal(data.count) else {
            return try stage(DataSource(data))
        }
        try checkUsable()
        return try unsafe data.bytes.withUnsafeBytes { (bytes) throws(CofferError) in
            try unsafe attachments.seal(bytes)
        }
    }

    /// Writes content into the store's `incoming/`, as ciphertext where the store is encrypted.
    func stage(_ source: any ContentSource) throws(CofferError) -> StagedAttachment {
        let writer = try beginStaging()
        do throws(CofferError) {
            unsafe try source.read { (bytes: UnsafeRawBufferPointer) throws(CofferError) in
                try unsafe writer.write(bytes)
            }
            return try writer.finish()
        } catch {
            writer.cancel()
            throw error
        }
    }

    /// Opens an attachment's content; nil if it was never downloaded.
    ///
    /// - Throws: `damaged` (500) when it should be here and is missing or was changed; `attachmentNotFound` (404) when no
    ///   revision has it any more, since the database was compacted; `closed` (500).
    func openAttachment(
        _ key: AttachmentKey, subject: String, onlyForReadingWhole: Bool = false
    ) throws(CofferError) -> AttachmentReader? {
        var row = try attachmentRow(key, subject)
        while true {
            guard let content = row.content, let proof = row.proof else { return nil }
            if let staged = staged(content.sha1) { return try staged.open() }
            let attachments = attachments
            do throws(CofferError) {
                return try attachments.open(
                    content, header: proof.header, subject: subject, onlyForReadingWhole: onlyForReadingWhole)
            } catch  where error.code == .damaged {
                // It may have been compacted away, or written again, since the row was read. Only if it is still that
                // row, whose number no other gets, and the key was not changed just then, is it damage.
                let now = try attachmentRow(key, subject)
                if now.number == row.number && now.proof == proof && attachments === self.attachments { throw error }
                row = now
            }
        }
    }

    /// Whether the content is here. Neither opens nor reads it.
    func hasContent(_ key: AttachmentKey) -> Bool { availableContent(key) != nil }

    /// The SHA-1 of a content that is here; nil if it isn't. Neither opens nor reads it.
    func availableContent(_ key: AttachmentKey) -> [UInt8]? {
        guard let row = try? read({ (tables) throws(CofferError) in try attachment(key, tables) }),
            let content = row.content
        else { return nil }
        if staged(content.sha1) != nil { return content.sha1 }
        while true {
            let attachments = attachments
            if attachments.isPresent(content.sha1) { return content.sha1 }
            if attachments === self.attachments { return nil }
        }
    }

    private func attachmentRow(_ key: AttachmentKey, _ subject: String) throws(CofferError) -> AttachmentRow {
        let row = try read { (tables) throws(CofferError) in try attachment(key, tables) }
        guard let row else {
            throw CofferError(.attachmentNotFound, of: subject, "no revision uses it any more")
        }
        return row
    }
}
