package import CofferSealing
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

extension AttachmentStore {
    /// From how many files on one sync of the whole file system takes the place of one for each.
    ///
    /// It also waits for what others have written there, so it isn't worth it for a few.
    static let wholeSyncThreshold = 8

    /// Makes the content of `staged` the store's, durably, before the rows are committed that mean it.
    ///
    /// To be called within the transaction that inserts those rows, once for each content, and only for content that has
    /// no row yet: a file that is there without one is replaced. The files are announced in `incoming/` first, so that
    /// whatever happens the next open knows which of them may have no row; then they get their places in `attachments/`.
    /// After the transaction, ``didCommit(_:)`` or ``didRollBack(_:)`` has to be called with all of them; when it is open
    /// whether the commit was made, neither, and the store be opened again.
    ///
    /// On an error nothing is installed. Throws `noSpace` (507), `ioFailed` (500), `damaged` (500) for content that is
    /// lost since an earlier call failed, and `reopenRequired` (500) after a sync that failed, here or earlier.
    package func install(_ staged: [StagedAttachment]) throws(CofferError) {
        if !staged.isEmpty { try install(staged, hasChanged: false) }
    }

    /// The same, where some have their places already, by ``place(_:didAnnounce:)``, or nothing is left of what had.
    func install(_ staged: [StagedAttachment], hasChanged: Bool) throws(CofferError) {
        let attachments = try writable(attachments)
        precondition(Set(staged.map(\.digest.sha1)).count == staged.count, "one content, installed twice")
        var announced: [InstallIntent] = []
        do throws(CofferError) {
            try place(staged) { announced.append($0) }
            if hasChanged || !staged.isEmpty {
                try synchronizing { () throws(CofferError) in try makeDurable(staged, in: attachments) }
            }
        } catch {
            takeBack(staged, intents(of: staged) + announced)
            throw error
        }
    }

    /// Announces those of `staged` that don't have their places yet, durably, and then gives them these.
    ///
    /// On an error some of them may have theirs.
    func place(
        _ staged: [StagedAttachment], didAnnounce: (InstallIntent) -> Void
    ) throws(CofferError) {
        let attachments = try writable(attachments)
        let incoming = try writable(incoming)
        var waiting: [(attachment: StagedAttachment, name: String)] = []
        for attachment in staged where try attachment.isWaiting() {
            precondition(attachment.store === self, "staged in another generation")
            waiting.append((attachment, try naming.name(of: attachment.digest.sha1)))
        }
        guard !waiting.isEmpty else { return }
        let intent = try announce(waiting.map(\.name), in: incoming)
        didAnnounce(intent)
        for (attachment, name) in waiting {
            try place(attachment, from: incoming, to: attachments, as: name, intent)
        }
    }

    /// The transaction of ``install(_:)`` was committed.
    package func didCommit(_ staged: [StagedAttachment]) { didCommit(staged, intents(of: staged)) }

    /// The same, where `intents` announce them and perhaps others, which are gone.
    func didCommit(_ staged: [StagedAttachment], _ intents: [InstallIntent]) {
        for attachment in staged {
            attachment.state.withLock { state in
                guard case .installed = state.stage else { return }
                attachment.closeFile(&state)
                state.stage = .saved
                state.lease = nil
            }
        }
        guard let incoming else { return }
        for intent in intents { withdraw(intent, from: incoming) }
    }

    /// The transaction of ``install(_:)`` was rolled back: nothing is installed any more, and what was can be once more.
    ///
    /// Only when that is certain. A commit that failed in the middle may turn out to have been made. Where the disk is too
    /// full for a file to come back, it is lost.
    package func didRollBack(_ staged: [StagedAttachment]) { takeBack(staged, intents(of: staged)) }

    func intents(of staged: [StagedAttachment]) -> [InstallIntent] {
        var intents: [InstallIntent] = []
        for attachment in staged {
            switch attachment.state.withLock(\.stage) {
            case .installed(_, let intent), .placing(_, _, let intent):
                if intents.last !== intent { intents.append(intent) }
            case .sealed, .staged, .saved, .left, .moved: break
            }
        }
        return intents
    }

    /// Gives the file its place.
    private func place(
        _ attachment: StagedAttachment, from incoming: Directory, to attachments: Directory, as name: String,
        _ intent: InstallIntent
    ) throws(CofferError) {
        try attachment.state.withLock { (state) throws(CofferError) in
            if case .sealed(let bytes) = state.stage {
                return try attachment.write(bytes, to: attachments, as: name, intent, &state)
            }
            guard case .staged = state.stage, let oldName = state.name else { return }
            do throws(CofferError) {
                try fileSystem.rename(oldName, in: incoming, to: name, in: attachments)
            } catch {
                // It may have had its effect. If it hadn't, what is in the file's place is something else.
                do throws(CofferError) {
                    let isStillThere = try fileSystem.status(of: oldName, in: incoming) != nil
                    if !isStillThere { state.stage = .installed(as: name, intent) }
                } catch {
                    isUncertain.store(true, ordering: .releasing)
                }
                throw error
            }
            state.stage = .installed(as: name, intent)
        }
    }

    /// Has the disk write what has its place already, while the transaction goes on: so less is left to wait for at its end.
    ///
    /// A failure has to reach the commit: the system tells it once.
    func synchronizeEarly() throws(CofferError) {
        try synchronizing { () throws(CofferError) in
            let attachments = try writable(attachments)
            guard try fileSystem.reportsFailedWrites(attachments) else { return }
            try fileSystem.synchronizeFileSystem(of: attachments)
        }
    }

    private func makeDurable(_ staged: [StagedAttachment], in attachments: Directory) throws(CofferError) {
        let files = staged.compactMap { attachment in attachment.state.withLock(\.file) }
        // Of a file that was closed in between, only the file system as a whole is sure to say what became of its writes.
        let isMany = staged.count >= Self.wholeSyncThreshold || files.count < staged.count
        if isMany, try fileSystem.reportsFailedWrites(attachments) {
            try fileSystem.synchronizeFileSystem(of: attachments)
        } else {
            for attachment in staged {
                guard let file = try attachment.openInPlace(subject: StagedAttachment.unsavedSubject) else { continue }
                try fileSystem.synchronize(file)
            }
        }
        // Before Linux 5.17, a sync of the whole file system doesn't say when its journal failed; this does.
        try fileSystem.synchronize(attachments)
    }

    /// Creates a file, in the place of one that has no row.
    func createFile(replacing name: String, in attachments: Directory) throws(CofferError) -> File {
        do throws(CofferError) {
            return try fileSystem.createFile(name, in: attachments)
        } catch  where error.systemErrorNumber == EEXIST {
            try fileSystem.unlink(name, in: attachments)
            return try fileSystem.createFile(name, in: attachments)
        }
    }

    /// Moves what of `staged` is installed back to `incoming/`, while the transaction goes on: what announces it stays, and
    /// has to until `attachments/` was synced.
    func takeBackEarly(_ staged: [StagedAttachment]) throws(CofferError) {
        let attachments = try writable(attachments)
        let incoming = try writable(incoming)
        for attachment in staged { _ = takeBack(attachment, from: attachments, to: incoming) }
        _ = try writable(attachments)
    }

    /// Moves what of `staged` is installed back to `incoming/`, and removes what announces it.
    ///
    /// - Parameter hasChanged: whether more is to be durable in `attachments/` before that.
    func takeBack(_ staged: [StagedAttachment], _ intents: [InstallIntent], hasChanged: Bool = false) {
        guard let attachments, let incoming else { return }
        var isChanged = hasChanged
        for attachment in staged { if takeBack(attachment, from: attachments, to: incoming) { isChanged = true } }
        // The intent must not go for good before the files in `attachments/` have.
        if isChanged { try? synchronizing { () throws(CofferError) in try fileSystem.synchronize(attachments) } }
        guard isUncertain.load(ordering: .acquiring) else {
            for intent in intents { withdraw(intent, from: incoming) }
            return
        }
        for attachment in staged {
            attachment.state.withLock { state in if case .staged = state.stage { state.stage = .left } }
        }
    }

    /// Returns whether there was anything to take back.
    private func takeBack(
        _ attachment: StagedAttachment, from attachments: Directory, to incoming: Directory
    ) -> Bool {
        attachment.state.withLock { state in
            switch state.stage {
            case .placing(let bytes, let name, _):
                state.stage = .sealed(bytes)
                unlinkPlaced(name, in: attachments)
                return true
            case .installed(let name, _):
                state.stage = .staged
                do throws(CofferError) {
                    let oldName = if let name = state.name { name } else { try IncomingName.random() }
                    state.name = oldName
                    try fileSystem.rename(name, in: attachments, to: oldName, in: incoming)
                } catch {
                    // It may have had its effect, too.
                    if let oldName = state.name, let status = try? fileSystem.status(of: oldName, in: incoming),
                        status.kind == .file
                    {
                        return true
                    }
                    state.stage = .left
                    unlinkPlaced(name, in: attachments)
                }
                return true
            case .sealed, .staged, .saved, .left, .moved: return false
            }
        }
    }

    /// Removes a file that can't be taken back otherwise, which takes no space.
    private func unlinkPlaced(_ name: String, in attachments: Directory) {
        do throws(CofferError) {
            try fileSystem.unlink(name, in: attachments)
        } catch {
            if error.systemErrorNumber != ENOENT { isUncertain.store(true, ordering: .releasing) }
        }
    }
}
