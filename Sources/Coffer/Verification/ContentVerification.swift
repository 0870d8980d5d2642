internal import CofferModel
internal import CofferSealing
internal import CofferRecords
internal import CofferVault
internal import Dispatch
internal import Foundation
internal import Synchronization

/// Checks the files of attachments and blobs, on all cores.
struct ContentVerification {
    let attachments: AttachmentStore
    /// Reads every byte, and not only where files begin and end.
    let readsEverything: Bool
    let monitor: VerificationMonitor
    let snapshots: SnapshotSource

    struct Result: Sendable {
        var contentCount = 0
        var byteCount = 0
        var missingCount = 0
        var findings: [VerificationFinding] = []
        fileprivate var failure: CofferError?
        fileprivate var damaged: [AttachmentRow] = []
    }

    func run() throws(CofferError) -> Result {
        var rows: [AttachmentRow] = []
        var result = Result()
        let unreadable = try AttachmentRow.scan(snapshots) { (row) throws(CofferError) in
            guard row.proof != nil else { return }
            if row.isWellFormed {
                rows.append(row)
            } else {
                result.findings.append(
                    VerificationFinding(
                        .attachment, "row \(row.number) of the attachments", "it is not what was written"))
            }
        }
        if unreadable?.isEmpty != true {
            result.findings.append(
                VerificationFinding(.structure, "the table of attachments", "some rows can't be read"))
        }
        monitor.begin(
            readsEverything ? .everything : .attachments, byteCount: rows.reduce(0) { $0.addingSaturated($1.byteCount) }
        )
        try check(rows, &result)
        try name(&result)
        // Where the table can't be read the findings say so.
        result.missingCount = (try? snapshots.open().attachments.awaitedContentCount()) ?? 0
        return result
    }

    private func check(_ rows: [AttachmentRow], _ result: inout Result) throws(CofferError) {
        let next = Atomic(0)
        let shared = Lock(Result())
        DispatchQueue.concurrentPerform(iterations: max(1, ProcessInfo.processInfo.activeProcessorCount)) { _ in
            while true {
                let index = next.add(1, ordering: .relaxed).oldValue
                guard index < rows.count, monitor.goesOn else { return }
                let row = rows[index]
                let outcome = Swift.Result { () throws(CofferError) in try checkTwice(row) }
                shared.withLock { shared in
                    shared.contentCount += 1
                    shared.byteCount = shared.byteCount.addingSaturated(row.byteCount)
                    guard case .failure(let error) = outcome else { return }
                    guard error.isDamage else {
                        shared.failure = shared.failure ?? error
                        return
                    }
                    shared.damaged.append(row)
                    shared.findings.append(Self.finding(row, error))
                }
                monitor.advance(byteCount: row.byteCount)
            }
        }
        try monitor.checkCancelled()
        let checked = shared.withLock(\.self)
        if let failure = checked.failure { throw failure }
        result.contentCount = checked.contentCount
        result.byteCount = checked.byteCount
        result.damaged = checked.damaged
        result.findings += checked.findings
    }

    /// Whoever saves a content again whose file is damaged gives it another file, and its row another header: only what is
    /// damaged by the row as it is now is.
    private func checkTwice(_ row: AttachmentRow) throws(CofferError) {
        do throws(CofferError) {
            try check(row)
        } catch  where error.isDamage {
            guard let now = try withoutDamage({ () throws(CofferError) in try current(row) }) ?? row,
                now.proof != row.proof
            else { throw error }
            try check(now)
        }
    }

    private func current(_ row: AttachmentRow) throws(CofferError) -> AttachmentRow? {
        let tables = try snapshots.open()
        return try tables.attachments.attachment(row.key)
    }

    private func check(_ row: AttachmentRow) throws(CofferError) {
        guard let content = row.content else { return }
        let reader = try attachments.open(
            content, header: row.proof?.header ?? [], subject: "a content", onlyForReadingWhole: readsEverything)
        if readsEverything { try reader.check() }
    }

    private static func finding(_ row: AttachmentRow, _ error: CofferError) -> VerificationFinding {
        let digest = row.content.map { SHA1Digest.text(of: $0.sha1) } ?? ""
        return VerificationFinding(
            .attachment, "attachment \(digest)", error.detail ?? error.description, digest: digest)
    }

    /// Says of each damaged content which document has it, if the tables still tell.
    private func name(_ result: inout Result) throws(CofferError) {
        guard !result.damaged.isEmpty else { return }
        let damaged = result.damaged
        let owners = try withoutDamage { () throws(CofferError) in
            let tables = try snapshots.open()
            var owners: [String: String] = [:]
            for row in damaged {
                guard let digest = row.content.map({ SHA1Digest.text(of: $0.sha1) }) else { continue }
                owners[digest] = try tables.attachments.latestUser(of: row.number)
            }
            return owners
        }
        for index in result.findings.indices {
            guard let digest = result.findings[index].digest, let id = owners?[digest] else { continue }
            let finding = result.findings[index]
            result.findings[index] = VerificationFinding(
                .attachment, "\(finding.subject) of document \(id)", finding.detail, documentID: id, digest: digest)
        }
        // Found by several threads.
        result.findings.sort { $0.subject < $1.subject }
    }
}
