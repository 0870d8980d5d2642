internal import CofferModel
internal import CofferSealing
internal import CofferRecords
internal import CofferVault

/// Looks at a whole store, level by level, and writes nothing. It goes on where it can: what is damaged is a finding and
/// not an error.
struct Verifier {
    let store: LockedStore
    let manifest: UnlockedManifest
    let attachments: AttachmentStore?
    let subject: String
    let fileSystem: any FileSystem
    let monitor: VerificationMonitor
    /// The database file, as whoever has the store open reads it; nil if nobody has.
    let database: DatabaseFile?
    /// Opens the database file, for as long as who has connections to it needs its locks: closing it would end them.
    let openDatabaseFile: (Generation) throws(CofferError) -> File
    /// Runs what it is given while nobody copies the log into the database file, with the number of frames that the log is
    /// known to have.
    let alone: (_ body: (_ frameCount: Int) throws(CofferError) -> Void) throws(CofferError) -> Void

    func run(_ level: VerificationLevel) throws(CofferError) -> Verification {
        let start = ContinuousClock.now
        let result = try checked(level)
        CofferLog.write(
            result.isSound ? .info : .error, .storage, subject,
            result.isSound ? "verified" : "verified, and found damaged",
            ["findings": String(result.findings.count), "milliseconds": (.now - start).inMilliseconds])
        return result
    }

    private func checked(_ level: VerificationLevel) throws(CofferError) -> Verification {
        var result = Verification(level)
        try checkManifest(&result)
        result.oldGenerations = try store.oldGenerations(beside: manifest.manifest).map(OldGeneration.init)
        guard level >= .pages else { return result }
        result.skipped = try store.specialEntries().map { SkippedEntry(path: $0.path, reason: $0.what) }
        let generation: Generation
        do throws(CofferError) {
            generation = try store.generation(of: manifest)
        } catch  where error.code == .damaged {
            result.findings.append(
                VerificationFinding(.structure, error.subject ?? "the store", error.detail ?? "it is damaged"))
            return result
        }
        let database =
            if let database { database } else {
                try DatabaseFile(
                    path: generation.databasePath, subject: subject, protection: DatabaseProtection(of: manifest))
            }
        let verification = PageVerification(
            fileSystem: fileSystem, generation: generation, file: try openDatabaseFile(generation),
            protection: database.protection, monitor: monitor.work)
        monitor.begin(.pages, byteCount: try verification.byteCount)
        let pages = try verification.run(alone: alone)
        result.pageCount = pages.pageCount
        result.findings += pages.findings.map(VerificationFinding.init)
        guard level >= .documents else { return result }
        try checkDocuments(of: database, &result)
        guard level >= .attachments else { return result }
        try checkContents(of: database, readingEverything: level >= .everything, &result)
        return result
    }

    /// Reads MANIFEST again, as the next who opens the store.
    ///
    /// Its code was found right when the store was opened, or made with it; what is the same now has the same code.
    private func checkManifest(_ result: inout Verification) throws(CofferError) {
        do throws(CofferError) {
            guard try store.readManifest() == manifest.manifest else {
                throw CofferError(.damaged, "it differs from the one that the store was opened with")
            }
        } catch  where error.isDamage || error.code == .notAStore {
            result.findings.append(
                VerificationFinding(.manifest, Manifest.fileName, error.detail ?? "it is missing"))
        }
    }

    private func checkDocuments(of database: DatabaseFile, _ result: inout Verification) throws(CofferError) {
        try database.checkLogReadable()
        monitor.begin(.documents, byteCount: database.byteCount)
        let documents = try DocumentVerification(
            snapshots: snapshots(of: database), manifest: manifest.manifest, monitor: monitor.work
        ).run()
        result.documentCount = documents.documentCount
        result.revisionCount = documents.revisionCount
        result.findings += documents.findings.map(VerificationFinding.init)
    }

    private func checkContents(
        of database: DatabaseFile, readingEverything: Bool, _ result: inout Verification
    ) throws(CofferError) {
        let attachments = if let attachments { attachments } else { try AttachmentStore(store, manifest) }
        let verification = ContentVerification(
            attachments: attachments, readsEverything: readingEverything, monitor: monitor,
            snapshots: snapshots(of: database))
        let contents = try withoutDamage { () throws(CofferError) in try verification.run() }
        guard let contents else {
            result.findings.append(
                VerificationFinding(
                    .structure, "the table of attachments", "it can't be read, so no content was checked"))
            return
        }
        result.attachmentCount = contents.contentCount
        result.attachmentByteCount = contents.byteCount
        result.missingContentCount = contents.missingCount
        result.findings += contents.findings
    }

    private func snapshots(of database: DatabaseFile) -> SnapshotSource {
        let readsLog = database.logByteCount > 0 || store.access == .readWrite
        return SnapshotSource(database: database, reading: readsLog ? .throughLog : .immutable, monitor: monitor.work)
    }
}
