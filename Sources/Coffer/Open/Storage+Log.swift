internal import CofferSealing
internal import CofferRecords

extension Storage {
    /// Empties a log that has grown long, so that the next commit starts it again.
    ///
    /// Whoever reads the state before the last commit is in the way: idle readers give it up, and those at work get a
    /// moment to finish. The clock must stand at a commit under way, so that none of them keeps it.
    func checkpoint(_ writer: borrowing Writer) {
        guard writer.records.logFrameCount >= max(settings.checkpointFrameCount, writer.state.nextCheckpoint)
        else {
            return
        }
        copyLog(writer, keepingLength: true)
    }

    /// Empties the log, unless readers are in the way: for whoever holds the writer, outside of a transaction.
    func emptyLog(_ writer: borrowing Writer) {
        clock.willCommit()
        defer { clock.didCommit() }
        copyLog(writer, keepingLength: false)
    }

    private func copyLog(_ writer: borrowing Writer, keepingLength: Bool) {
        let frameCount = writer.records.logFrameCount
        generation.closeIdleSnapshots()
        do throws(CofferError) {
            let isComplete = try writer.records.checkpoint(
                patience: .milliseconds(100), keepingLength: keepingLength)
            writer.state.nextCheckpoint = isComplete ? 0 : frameCount + settings.checkpointFrameCount / 16
        } catch {
            // The commit is safe in the log. The next write finds out whether the disk still works.
            noteFailure(error)
        }
    }
}
