internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import CofferVault

/// The content files that the transaction under way brings: those that it may install, and those that it will.
///
/// A class, since the writer is lent to be read alone. It leads to no connection.
final class TransactionFiles {
    /// Where content files belong that the database has rows for.
    let attachments: AttachmentStore

    /// The files that the transaction will install.
    let installation: Installation
    /// How many were to be installed as each nested transaction began.
    private var installCounts: [Int] = []

    /// The files that it may install, by their SHA-1.
    private var staged: [[UInt8]: StagedAttachment] = [:]

    init(_ attachments: AttachmentStore) {
        self.attachments = attachments
        installation = Installation(attachments)
    }

    // MARK: Transactions

    /// Called as a transaction begins, nested or not.
    func begin() { installCounts.append(installation.files.count) }

    /// Called as the innermost transaction is committed.
    func commit() { installCounts.removeLast() }

    /// Called as the innermost transaction is rolled back.
    func rollBack() { installation.rollBack(to: installCounts.removeLast()) }

    /// Forgets all files that it may install, once the outermost transaction has ended.
    func forgetStaged() { staged = [:] }

    // MARK: Files

    /// Notes that the transaction may install this file. One that was staged before the key was changed is encrypted again.
    func stage(_ file: StagedAttachment) throws(CofferError) {
        staged[file.digest.sha1] = try file.moved(to: attachments)
    }

    /// The file of this digest that came last of those that the transaction may install.
    func staged(_ key: AttachmentKey) -> StagedAttachment? {
        guard case .sha1(let sha1) = key, let file = staged[sha1] else { return nil }
        // One that another transaction saved meanwhile is the store's: only its row counts.
        return file.isSaved ? nil : file
    }

    /// Forgets a file that the transaction doesn't install, since the content is there or another file has it.
    func forget(_ file: StagedAttachment) {
        let sha1 = file.digest.sha1
        staged[sha1] = installation.file(of: sha1)
    }

    /// The file that has the content of this SHA-1 until the transaction has ended.
    func readable(_ sha1: [UInt8]) -> StagedAttachment? { installation.file(of: sha1) ?? staged[sha1] }

    /// Whether a content's file is there or will be, and the one that its row means, as far as that shows without reading it.
    ///
    /// - Throws: `ioFailed` (500) when that can't be told: what is there must not be replaced then.
    func has(_ content: ContentDigest, header: [UInt8], subject: String) throws(CofferError) -> Bool {
        if installation.file(of: content.sha1) != nil { return true }
        do throws(CofferError) {
            _ = try attachments.open(content, header: header, subject: subject)
            return true
        } catch  where error.code == .damaged {
            return false
        }
    }

    /// The bytes of all files that the transaction will install.
    var installedByteCount: Int { installation.files.reduce(0) { $0 + $1.digest.byteCount } }
}
