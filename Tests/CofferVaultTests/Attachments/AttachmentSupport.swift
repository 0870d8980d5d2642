import CofferSealing
import CofferVault
import Foundation
import Testing

/// A store with its attachment files, and a set in the place of the database's rows.
final class AttachmentFixture {
    let scratch: Scratch
    let store: LockedStore
    let manifest: UnlockedManifest
    let attachments: AttachmentStore

    init(
        isEncrypted: Bool = true, names: Manifest.AttachmentNames = .sha1, in scratch: Scratch = Scratch(),
        fileSystem: any FileSystem = SystemFileSystem(), batchCount: Int = Installation.batchCount,
        adjustDigest: @escaping @Sendable (ContentDigest) -> ContentDigest = { $0 }
    ) throws {
        self.scratch = scratch
        (store, manifest) = try LockedStore.create(
            path: scratch.store, key: isEncrypted ? rawKey() : nil, attachmentNames: names, fileSystem: fileSystem,
            buildDatabase: buildStandIn)
        attachments = try AttachmentStore(store, manifest, batchCount: batchCount, adjustDigest: adjustDigest)
    }

    deinit { store.close() }

    var generation: String { "\(scratch.store)/\(manifest.manifest.generationName)" }

    /// The names in `attachments/` and in `incoming/`.
    var files: [String] { names(in: generation + "/attachments") }
    var incoming: [String] { names(in: generation + "/incoming") }

    /// Where the file of an installed attachment is.
    func path(of staged: StagedAttachment) throws -> String {
        try "\(generation)/attachments/\(attachments.naming.name(of: staged.digest.sha1))"
    }

    func stage(_ bytes: [UInt8], pieces: Int? = nil) throws(CofferError) -> StagedAttachment {
        try attachments.stage(bytes, pieces: pieces)
    }

    /// Stages and installs, as a transaction that is committed.
    func save(_ bytes: [UInt8]) throws -> StagedAttachment {
        let staged = try stage(bytes)
        try attachments.install([staged])
        attachments.didCommit([staged])
        return staged
    }

    func open(_ staged: StagedAttachment) throws(CofferError) -> AttachmentReader {
        try attachments.open(staged.digest, header: staged.header, subject: subject)
    }

    /// As a long content is opened of which all is asked for.
    func openForTwo(_ staged: StagedAttachment) throws(CofferError) -> AttachmentReader {
        try attachments.open(
            staged.digest, header: staged.header, subject: subject, onlyForReadingWhole: true, bytesReadByTwo: 0)
    }
}

/// What errors of a fixture's attachments are about.
let subject = "attachment scan.pdf of invoice-17"

func names(in path: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
}

extension AttachmentStore {
    /// Stages `bytes`, given in pieces of `pieces` bytes.
    func stage(_ bytes: [UInt8], pieces: Int? = nil) throws(CofferError) -> StagedAttachment {
        let writer = try beginStaging()
        let size = pieces ?? max(1, bytes.count)
        for start in stride(from: 0, to: bytes.count, by: size) {
            try writer.write(Array(bytes[start..<min(start + size, bytes.count)]))
        }
        return try writer.finish()
    }
}

/// `count` bytes that differ everywhere and from one `seed` to another, and are the same each time.
func content(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed &* 0x9E37_79B9_7F4A_7C15
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        withUnsafeBytes(of: state) { bytes += $0 }
    }
    return Array(bytes.prefix(count))
}

/// The whole content, read in pieces of `pieces` bytes.
func read(
    _ reader: AttachmentReader, pieces: Int, checking check: ContentCheck = .digest
) throws(CofferError) -> [UInt8] {
    let reading = reader.wholeRead(checking: check)
    var all: [UInt8] = []
    var piece = [UInt8](repeating: 0xAA, count: pieces)
    while true {
        let count = try fill(&piece, reading)
        if count == 0 { return all }
        all += piece[..<count]
    }
}

/// Fills `buffer` with the next bytes of `reading`, and returns how many they are.
func fill(_ buffer: inout [UInt8], _ reading: WholeRead) throws(CofferError) -> Int {
    var span = buffer.mutableSpan
    return try span.withUnsafeMutableBytes { (bytes) throws(CofferError) in try reading.read(into: bytes) }
}

/// Opens an existing store and its attachment files. Whoever calls it closes the store.
func openAttachments(
    at path: String, access: LockedStore.Access = .readWrite, key: SymmetricKey? = rawKey(),
    otherOwners: OtherOwners = .refused, fileSystem: any FileSystem = SystemFileSystem(),
    batchCount: Int = Installation.batchCount
) throws(CofferError) -> (LockedStore, AttachmentStore) {
    let store = try LockedStore.open(path: path, access: access, otherOwners: otherOwners, fileSystem: fileSystem)
    do throws(CofferError) {
        let manifest = try store.readManifest().unlock(with: key)
        return (store, try AttachmentStore(store, manifest, batchCount: batchCount) { $0 })
    } catch {
        store.close()
        throw error
    }
}

/// Where the attachment files of the store at `path` are.
func attachmentsPath(ofStoreAt path: String) throws -> String {
    try "\(path)/\(Manifest.read(path: path).generationName)/attachments"
}
