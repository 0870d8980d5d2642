package import CofferSealing
package import CofferVault

/// Checks the pages in a write-ahead log, as sqlite.org/fileformat2.html section 4 has it.
///
/// Where the log's own checksums end, SQLite ends it, as after a crash. Of a log that a killed process left nobody knows
/// whether it had more; of one that this process writes it is known. Checked is every page before that: whoever can make
/// checksums right has no key for the page's code.
package struct LogVerification {
    package let fileSystem: any FileSystem
    package let generation: Generation
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
        guard let log = try WriteAheadLog(fileSystem, generation), log.hasHeader else { return }
        var found = result
        defer { result = found }
        // Frames after the last commit count for nothing.
        var pending = Result()
        try log.forEachFrame { (frame, page) throws(CofferError) in
            try monitor.checkCancelled()
            guard frame.isIntact else {
                if frame.page == 0, ZeroPage.isZero(page) {
                    found.zeroFrame = found.frameCount + pending.frameCount + 1
                }
                return false
            }
            pending.frameCount += 1
            if try unsafe authenticator?.isAuthentic(page.span.bytes, number: frame.page) ?? true {
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
