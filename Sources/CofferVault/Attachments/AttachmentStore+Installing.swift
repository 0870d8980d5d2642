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
    /// whatever happens the next open knows which of them may have no row; then they move to `attachments/`. After the
    /// transaction, ``didCommit(_:)`` or ``didRollBack(_:)`` has to be called with all of them; when it is open whether
    /// the commit was made, neither, and the store be opened again.
    ///
    /// On an error nothing is installed. Throws `noSpace` (507), `ioFailed` (500), `damaged` (500) for content that is
    /// lost since an earlier call failed, and `reopenRequired` (500) after a sync that failed, here or earlier.
    package func install(_ staged: [StagedAttachment]) throws(CofferError) {
        guard !staged.isEmpty else { return }
        let attachments = try writable(attachments)
        let incoming = try writable(incoming)
        precondition(staged.allSatisfy { $0.store === self }, "staged in another generation")
        precondition(Set(staged.map(\.digest.sha1)).count == staged.count, "one content, installed twice")
        var names: [String] = []
        for attachment in staged {
            try attachment.checkInstallable()
            names.append(try naming.name(of: attachment.digest.sha1))
        }

        let announcement = try announce(names, in: incoming)
        do throws(CofferError) {
            for (attachment, name) in zip(staged, names) {
                try place(attachment, from: incoming, to: attachments, as: name, announcement)
            }
            try synchronizing { () throws(CofferError) in try makeDurable(staged, in: attachments) }
        } catch {
            takeBack(staged, [announcement])
            throw error
        }
    }

    /// The transaction of ``install(_:)`` was committed.
    package func didCommit(_ staged: [StagedAttachment]) {
        let announcements = announcements(of: staged)
        for attachment in staged {
            attachment.state.withLock { state in
                guard case .installed = state.stage else { return }
                attachment.closeFile(&state)
                state.stage = .saved
                state.lease = nil
            }
        }
        guard let incoming else { return }
        for announcement in announcements { withdraw(announcement, from: incoming) }
    }

    /// The transaction of ``install(_:)`` was rolled back: nothing is installed any more, and what was can be once more.
    ///
    /// Only when that is certain. A commit that failed in the middle may turn out to have been made. Where the disk is too
    /// full for a file to come back, it is lost.
    package func didRollBack(_ staged: [StagedAttachment]) { takeBack(staged, announcements(of: staged)) }

    private func announcements(of staged: [StagedAttachment]) -> [Announcement] {
        var announcements: [Announcement] = []
        for attachment in staged {
            guard case .installed(_, let announcement) = attachment.state.withLock(\.stage) else { continue }
            if announcements.last !== announcement { announcements.append(announcement) }
        }
        return announcements
    }

    /// Gives the file its place.
    private func place(
        _ attachment: StagedAttachment, from incoming: Directory, to attachments: Directory, as name: String,
        _ announcement: Announcement
    ) throws(CofferError) {
        try attachment.state.withLock { (state) throws(CofferError) in
            do throws(CofferError) {
                try fileSystem.rename(state.name, in: incoming, to: name, in: attachments)
            } catch {
                // It may have had its effect. If it hadn't, what is in the file's place is something else.
                do throws(CofferError) {
                    let isStillThere = try fileSystem.status(of: state.name, in: incoming) != nil
                    if !isStillThere { state.stage = .installed(as: name, announcement) }
                } catch {
                    isUncertain.store(true, ordering: .releasing)
                }
                throw error
            }
            state.stage = .installed(as: name, announcement)
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

    /// Moves what of `staged` is installed back to `incoming/`, and removes what announces it.
    private func takeBack(_ staged: [StagedAttachment], _ announcements: [Announcement]) {
        guard let attachments, let incoming else { return }
        var isChanged = false
        for attachment in staged { if takeBack(attachment, from: attachments, to: incoming) { isChanged = true } }
        // The announcement must not go for good before the files in `attachments/` have.
        if isChanged { try? synchronizing { () throws(CofferError) in try fileSystem.synchronize(attachments) } }
        guard isUncertain.load(ordering: .acquiring) else {
            for announcement in announcements { withdraw(announcement, from: incoming) }
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
            guard case .installed(let name, _) = state.stage else { return false }
            state.stage = .staged
            do throws(CofferError) {
                try fileSystem.rename(name, in: attachments, to: state.name, in: incoming)
            } catch {
                // It may have had its effect, too.
                if let status = try? fileSystem.status(of: state.name, in: incoming), status.kind == .file {
                    return true
                }
                state.stage = .left
                do throws(CofferError) {
                    // That takes no space.
                    try fileSystem.unlink(name, in: attachments)
                } catch {
                    if error.systemErrorNumber != ENOENT { isUncertain.store(true, ordering: .releasing) }
                }
            }
            return true
        }
    }
}
