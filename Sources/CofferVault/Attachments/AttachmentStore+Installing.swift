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
    /// no row yet: a file that is there without one is replaced. Each file is first announced, by its name in `incoming/`,
    /// so that whatever happens the next open knows which file may have no row. After the transaction,
    /// ``didCommit(_:)`` or ``didRollBack(_:)`` has to be called; when it is open whether the commit was made, neither,
    /// and the store be opened again.
    ///
    /// On an error nothing is installed. Throws `noSpace` (507), `ioFailed` (500), and `reopenRequired` (500) after a sync
    /// that failed, here or earlier.
    package func install(_ staged: [StagedAttachment]) throws(CofferError) {
        guard !staged.isEmpty else { return }
        let attachments = try writable(attachments)
        let incoming = try writable(incoming)
        precondition(staged.allSatisfy { $0.store === self }, "staged in another generation")
        precondition(Set(staged.map(\.digest.sha1)).count == staged.count, "one content, installed twice")

        do throws(CofferError) {
            for attachment in staged { try announce(attachment, in: incoming) }
            try synchronizing { () throws(CofferError) in try fileSystem.synchronize(incoming) }
            for attachment in staged { try link(attachment, from: incoming, to: attachments) }
            try synchronizing { () throws(CofferError) in try makeDurable(staged, in: attachments) }
        } catch {
            undo(staged)
            throw error
        }
    }

    /// The transaction of ``install(_:)`` was committed.
    package func didCommit(_ staged: [StagedAttachment]) {
        for attachment in staged {
            attachment.state.withLock { state in
                guard case .installed = state.stage else { return }
                attachment.closeFile(&state)
                state.stage = .saved
                state.lease = nil
                // If it comes back in a power cut, the next open finds the row and removes it again.
                try? fileSystem.unlink(state.name, in: attachment.incoming)
            }
        }
    }

    /// The transaction of ``install(_:)`` was rolled back: nothing is installed any more, and what was can be once more.
    ///
    /// Only when that is certain. A commit that failed in the middle may turn out to have been made.
    package func didRollBack(_ staged: [StagedAttachment]) { undo(staged) }

    /// Gives the file in `incoming/` the name that says what it will be.
    private func announce(_ attachment: StagedAttachment, in incoming: Directory) throws(CofferError) {
        let name = try IncomingName.announcing(naming.name(of: attachment.digest.sha1))
        try attachment.state.withLock { (state) throws(CofferError) in
            guard case .staged = state.stage else { preconditionFailure("installed already") }
            try fileSystem.rename(state.name, in: incoming, to: name, in: incoming)
            state.name = name
        }
    }

    private func link(
        _ attachment: StagedAttachment, from incoming: Directory, to attachments: Directory
    ) throws(CofferError) {
        let name = try naming.name(of: attachment.digest.sha1)
        try attachment.state.withLock { (state) throws(CofferError) in
            // Even if linking fails: it may have had its effect.
            state.stage = .installed(as: name)
            do throws(CofferError) {
                try fileSystem.link(state.name, in: incoming, to: name, in: attachments)
            } catch {
                guard error.systemErrorNumber == EEXIST else { throw error }
                // Without a row: what is in it nobody vouches for.
                try fileSystem.unlink(name, in: attachments)
                try fileSystem.link(state.name, in: incoming, to: name, in: attachments)
            }
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

    /// Takes out of `attachments/` again what of `staged` was put there.
    private func undo(_ staged: [StagedAttachment]) {
        guard let attachments else { return }
        var isChanged = false
        for attachment in staged {
            guard case .installed(let name) = attachment.state.withLock(\.stage) else { continue }
            isChanged = true
            do throws(CofferError) {
                try fileSystem.unlink(name, in: attachments)
            } catch {
                if error.systemErrorNumber != ENOENT { isUncertain.store(true, ordering: .releasing) }
            }
        }
        guard isChanged else { return }
        // The file in `incoming/` must not go for good before the one in `attachments/` has.
        try? synchronizing { () throws(CofferError) in try fileSystem.synchronize(attachments) }
        let isUndone = !isUncertain.load(ordering: .acquiring)
        for attachment in staged {
            attachment.state.withLock { state in
                guard case .installed = state.stage else { return }
                state.stage = isUndone ? .staged : .left
            }
        }
    }
}
