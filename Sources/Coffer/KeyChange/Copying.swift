internal import CofferRecords
internal import CofferModel
internal import CofferSealing
internal import CofferVault
internal import Dispatch
internal import Foundation
internal import Synchronization

/// How far a change of the encryption key, a backup or a salvage has come.
public struct CopyProgress: Sendable, Equatable, Codable {
    /// The current phase. The list is open: later versions may add phases, so a `switch` over it needs a `default`.
    public struct Phase: Sendable, Hashable, Codable, CustomStringConvertible {
        private let name: String

        /// Contents of attachments and blobs are copied. Others read and write meanwhile.
        public static let attachments = Phase(name: "attachments")
        /// The database is copied, and checked. Others read meanwhile; in a key change, writes wait. In a salvage, its pages
        /// are gone through.
        public static let database = Phase(name: "database")

        /// The phase's name, such as `attachments`.
        public var description: String { name }
    }

    /// The current phase.
    public var phase: Phase
    /// How many bytes of this phase are done.
    public var completedByteCount: Int
    /// How many bytes this phase has, as far as that is known: others may add some meanwhile.
    public var totalByteCount: Int
    /// How many contents are done; of the database, 0 or 1.
    public var completedItemCount: Int
    /// How many contents there are; of the database, 1.
    public var totalItemCount: Int
}

/// What a key change, a backup or a salvage tells of itself.
typealias CopyMonitor = ProgressMonitor<CopyProgress>

extension ProgressMonitor where Progress == CopyProgress {
    /// The same for who only goes through a database file.
    var work: WorkMonitor {
        WorkMonitor(goesOn: { self.goesOn }, advance: { self.advance(byteCount: $0) })
    }

    convenience init(
        report: (@Sendable (CopyProgress) -> Void)? = nil, while isWanted: @escaping @Sendable () -> Bool = { true }
    ) {
        self.init(from: .start, report: report, while: isWanted)
    }

    func begin(_ phase: CopyProgress.Phase, byteCount: Int, itemCount: Int) {
        update {
            $0 = CopyProgress(
                phase: phase, completedByteCount: 0, totalByteCount: byteCount, completedItemCount: 0,
                totalItemCount: itemCount)
        }
    }

    func advance(byteCount: Int = 0, itemCount: Int = 0) {
        update {
            $0.completedByteCount += byteCount
            $0.completedItemCount += itemCount
        }
    }

    /// Notes that all of the phase is done, whatever was counted of it.
    func complete() {
        update {
            $0.completedByteCount = $0.totalByteCount
            $0.completedItemCount = $0.totalItemCount
        }
    }
}

extension CopyProgress {
    /// Before anything is known.
    static let start = CopyProgress(
        phase: .attachments, completedByteCount: 0, totalByteCount: 0, completedItemCount: 0, totalItemCount: 0)
}

/// Copies the contents of attachments and blobs into a generation that is being built, on all cores, while others write.
struct ContentCopying {
    private let storage: Storage
    private let attachments: AttachmentStore
    private let next: GenerationBuilder
    private let monitor: CopyMonitor
    /// The rows of the contents to be copied, in the order of their numbers, after one and so many.
    private let rows: @Sendable (_ after: ContentNumber, _ limit: Int) throws(CofferError) -> [AttachmentRow]

    /// Rows that are read at once.
    private static let batchSize = 128

    /// Of all contents that the store has.
    init(_ storage: Storage, _ next: GenerationBuilder, _ monitor: CopyMonitor) {
        self.init(storage, next, monitor) { (number, limit) throws(CofferError) in
            try storage.readCommitted { (tables) throws(CofferError) in
                try tables.attachments.contents(after: number, limit: limit)
            }
        }
    }

    init(
        _ storage: Storage, _ next: GenerationBuilder, _ monitor: CopyMonitor,
        rows: @escaping @Sendable (_ after: ContentNumber, _ limit: Int) throws(CofferError) -> [AttachmentRow]
    ) {
        self.rows = rows
        self.storage = storage
        self.next = next
        self.monitor = monitor
        attachments = storage.attachments
    }

    /// Copies all that have a row by now.
    ///
    /// - Throws: `damaged` (500), naming an attachment; `cancelled` (499), `noSpace` (507), `ioFailed` (500).
    func run() throws(CofferError) {
        let work = Lock(Work())
        DispatchQueue.concurrentPerform(iterations: max(1, ProcessInfo.processInfo.activeProcessorCount)) { _ in
            do throws(CofferError) {
                while let row = try work.withLock({ (work) throws(CofferError) in try nextRow(&work) }) {
                    try monitor.checkCancelled()
                    try copy(row)
                }
            } catch {
                work.withLock { $0.failure = $0.failure ?? error }
            }
        }
        if let failure = work.withLock(\.failure) { throw failure }
    }

    /// What the row of a content should hold of its new file. For who keeps others from writing: what they added since
    /// is copied now.
    func header(for row: AttachmentRow) throws(CofferError) -> [UInt8] {
        guard let content = row.content else { throw missingRow() }
        if let header = try next.header(of: content) { return header }
        try copyOnce(row)
        guard let header = try next.header(of: content) else {
            throw CofferError(.ioFailed, of: storage.subject, "a file that was just written is gone")
        }
        return header
    }

    private struct Work {
        var rows: ArraySlice<AttachmentRow> = []
        var lastNumber: ContentNumber = 0
        var failure: CofferError?
    }

    private func nextRow(_ work: inout Work) throws(CofferError) -> AttachmentRow? {
        guard work.failure == nil else { return nil }
        if work.rows.isEmpty {
            work.rows = try rows(work.lastNumber, Self.batchSize)[...]
            work.lastNumber = work.rows.last?.number ?? work.lastNumber
        }
        return work.rows.popFirst()
    }

    private func copy(_ row: AttachmentRow) throws(CofferError) {
        var row = row
        while true {
            do throws(CofferError) {
                return try copyOnce(row)
            } catch  where error.code == .damaged {
                // It may have been removed, or written again, since the row was read. Only if the row still says the
                // same is it damage.
                let key = row.key
                let now = try storage.readCommitted { (tables) throws(CofferError) in
                    try tables.attachments.attachment(key)
                }
                guard let now, now.proof != nil else { return }
                if now.proof == row.proof { throw error }
                row = now
            }
        }
    }

    private func copyOnce(_ row: AttachmentRow) throws(CofferError) {
        guard let content = row.content, let proof = row.proof else { throw missingRow() }
        do throws(CofferError) {
            let reader = try attachments.open(content, header: proof.header, subject: Self.unnamed)
            try next.encrypt(reader) { (byteCount) throws(CofferError) in
                try monitor.checkCancelled()
                monitor.advance(byteCount: byteCount)
            }
            monitor.advance(itemCount: 1)
        } catch {
            guard error.subject == Self.unnamed else { throw error }
            throw CofferError(error.code, of: storage.subjectOfContent(row), error.detail, cause: error.cause)
        }
    }

    /// Names are looked up only where they are needed.
    private static let unnamed = "an attachment"

    private func missingRow() -> CofferError {
        CofferError(.damaged, of: storage.subject, "a content has a row without its digest")
    }
}

extension Storage {
    /// What users know a content as, for errors: an attachment of a document that uses it.
    func subjectOfContent(_ row: AttachmentRow) -> String {
        let digest: String
        switch row.key {
        case .sha1(let bytes): digest = SHA1Digest.text(of: bytes)
        case .foreign(let text): digest = text
        }
        let number = row.number
        let use = try? readCommitted { (tables) throws(CofferError) in try tables.firstUse(ofAttachment: number) }
        guard let (document, body) = use ?? nil else { return "a content of \(subject)" }
        let stubs = (try? JSONObject(canonical: body.span).attachmentStubs()) ?? []
        guard let stub = stubs.first(where: { $0.stub.digest == digest }) else {
            return "a blob of document \(document) of \(subject)"
        }
        return "attachment \(stub.name) of document \(document) of \(subject)"
    }
}
