package import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The bytes of a list of attachments that are about to be installed.
///
/// Its names are in `attachments/` for everybody to read, too, and it holds the bytes that they spell in hex: it is not
/// encrypted.
package enum InstallIntentList {
    /// How many names one list holds at most, so that nothing longer is ever read; more take more lists.
    package static let nameLimit = 4096

    private static let magic: [UInt8] = [0x89, 0x43, 0x46, 0x4C, 0x0D, 0x0A, 0x1A, 0x0A]
    private static let formatVersion: UInt16 = 1
    private static let headByteCount = 16
    private static let checksumByteCount = DigestAlgorithm.sha256.byteCount

    /// The list of `attachments`, which are names of the form that `names` says.
    package static func bytes(of attachments: [String], in names: Manifest.AttachmentNames) throws(CofferError)
        -> [UInt8]
    {
        precondition((1...nameLimit).contains(attachments.count), "too many names for a list, or none")
        var writer = FieldWriter()
        writer.append(magic)
        writer.append(formatVersion)
        writer.append(UInt16(AttachmentNaming.digestByteCount(in: names)))
        writer.append(UInt32(attachments.count))
        for attachment in attachments {
            guard let digest = AttachmentNaming.digest(in: attachment, names) else {
                preconditionFailure("a name that no attachment has")
            }
            writer.append(digest)
        }
        writer.append(try Digest.sha256(of: writer.bytes))
        return writer.bytes
    }

    /// The names in the list of these bytes; nil when they are not a whole list for names of that form.
    package static func attachments(in bytes: [UInt8], _ names: Manifest.AttachmentNames) throws(CofferError)
        -> [String]?
    {
        let digestByteCount = AttachmentNaming.digestByteCount(in: names)
        let count = (bytes.count - headByteCount - checksumByteCount) / digestByteCount
        guard (1...nameLimit).contains(count) else { return nil }
        var reader = FieldReader(bytes.dropFirst(headByteCount))
        let attachments = (0..<count).map { _ in AttachmentNaming.name(spelling: reader.bytes(digestByteCount)) }
        return try Self.bytes(of: attachments, in: names) == bytes ? attachments : nil
    }

    /// The names in the list that is called `name` in `incoming`; none when it isn't a whole one.
    ///
    /// One that a process was killed over, or a power cut, before it was durable announces nothing: no file had its place
    /// yet. Only what may be a list by its kind and length is read, and no link is followed.
    static func read(
        _ name: String, in incoming: Directory, _ names: Manifest.AttachmentNames, _ fileSystem: any FileSystem
    ) throws(CofferError) -> [String] {
        let longest = headByteCount + nameLimit * AttachmentNaming.digestByteCount(in: names) + checksumByteCount
        guard let status = try fileSystem.status(of: name, in: incoming), status.kind == .file,
            status.byteCount <= longest
        else { return [] }
        do throws(CofferError) {
            let file = try fileSystem.openFile(name, in: incoming)
            return try attachments(in: fileSystem.read(longest, from: file, at: 0), names) ?? []
        } catch {
            // Something else has its name by now.
            guard let number = error.systemErrorNumber, [ENOENT, ELOOP, ENXIO].contains(number) else { throw error }
            return []
        }
    }
}
