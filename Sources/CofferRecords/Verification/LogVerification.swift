package import CofferSealing
package import CofferVault

/// Checks the pages in a write-ahead log, as sqlite.org/fileformat2.html section 4 has it.
///
/// Where the log's own checksums end, SQLite ends it, as after a crash. Of a log that a killed process left nobody knows
/// whether it had more; of one that this process writes it is known. Checked is every page before that: whoever can make
/// checksums right has no key for the page's code.
///
/// Frames of a sealed log say how many before them were on the disk for good. So such a log is damaged, and doesn't end, at a
/// frame that doesn't open and was one of those.
package struct LogVerification {
    package let fileSystem: any FileSystem
    package let generation: Generation
    package let protection: DatabaseProtection
    package let monitor: WorkMonitor

    package struct Result {
        /// Frames up to the last commit.
        package var frameCount = 0
        /// The pages that a commit has put there, each with the right code, and where in the log the newest version is.
        package var offsets: [UInt32: Int] = [:]
        /// How many pages the database has after the last commit; nil if there isn't one in the log.
        package var pageCount: Int?
        /// The frame, from 1, at which the log ends because it is all zeros.
        package var zeroFrame: Int?
        /// What is damaged of a sealed log: the header, or a frame.
        fileprivate var lost: String?
        package var findings: [Damage] = []
    }

    /// - Parameters:
    ///   - frameCount: how many the log is known to have at least.
    ///   - makeAuthenticator: for the pages of the file that the log belongs to; nil if they have no codes.
    package func run(
        frameCount: Int, authenticator makeAuthenticator: () throws(CofferError) -> PageAuthenticator?
    ) throws(CofferError) -> Result {
        var result = Result()
        let isReadable: Void? = try withoutDamage { () throws(CofferError) in
            try read(makeAuthenticator(), &result)
        }
        if isReadable == nil {
            result.findings.append(Damage(.structure, WriteAheadLog.name, "it can't be read to its end"))
        } else if let lost = result.lost {
            result.findings.append(
                Damage(
                    .structure, WriteAheadLog.name, "\(lost) is damaged, and what comes later says that it was complete"
                ))
        } else if result.frameCount < frameCount {
            var detail = "it ends after \(result.frameCount) pages, and \(frameCount) were committed to it"
            if let frame = result.zeroFrame { detail += ". Frame \(frame) is all zeros, so it was never written" }
            result.findings.append(Damage(.structure, WriteAheadLog.name, detail))
        }
        return result
    }

    private func read(
        _ authenticator: consuming PageAuthenticator?, _ result: inout Result
    ) throws(CofferError) {
        guard let log = try WriteAheadLog(fileSystem, generation, protection) else { return }
        guard log.hasHeader || log.isSealed else { return }
        var found = result
        defer { result = found }
        if log.isHeaderImpossible {
            found.lost = "its header"
            return
        }
        // Where a sealed log ends: behind it are only frames that don't count, unless one says otherwise.
        var end = log.hasHeader ? nil : (frame: 1, name: "its header")
        // Frames after the last commit count for nothing.
        var pending = Result()
        try log.forEachFrame { (frame, page) throws(CofferError) in
            try monitor.checkCancelled()
            if let end {
                guard frame.isCurrent, frame.syncedFrameCount >= end.frame else { return true }
                found.lost = end.name
                return false
            }
            guard frame.isIntact else {
                let number = found.frameCount + pending.frameCount + 1
                if frame.page == 0, ZeroPage.isZero(page) { found.zeroFrame = number }
                end = (number, "frame \(number)")
                return log.isSealed
            }
            pending.frameCount += 1
            if try unsafe log.isSealed
                ? frame.isSealed : authenticator?.isAuthentic(page.span.bytes, number: frame.page) ?? true
            {
                pending.offsets[frame.page] = frame.offset
            } else {
                pending.offsets[frame.page] = nil
                pending.findings.append(
                    Damage(
                        .page, "page \(frame.page) in \(WriteAheadLog.name)",
                        ZeroPage.isZero(page) ? ZeroPage.meaningWhereEncrypted : "its MAC doesn't match its bytes",
                        page: Int(frame.page)))
            }
            if frame.pageCount != 0 {
                found.frameCount += pending.frameCount
                found.offsets.merge(pending.offsets) { $1 }
                found.findings += pending.findings
                found.pageCount = Int(frame.pageCount)
                pending = Result()
            }
            return true
        }
    }
}
