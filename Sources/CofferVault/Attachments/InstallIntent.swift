package import CofferSealing
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// An intent record: what tells the next open which files of `attachments/` may have no row. Files in `incoming/`, durable before
/// the first of those has its place there, and go when the transaction has ended.
///
/// A few attachments are announced by an empty file each, whose name is enough and needs no sync of its own; many by a
/// list, which costs one file for all of them.
final class InstallIntent: Sendable {
    /// The names in `incoming/` that it is made of.
    fileprivate let names: [String]
    fileprivate let isWithdrawn = Atomic(false)

    fileprivate init(_ names: [String]) { self.names = names }
}

extension AttachmentStore {
    /// Announces, durably, that files of these names will be in `attachments/`.
    ///
    /// On an error nothing is announced, and nothing is left unless that can't be removed either.
    func announce(_ attachments: [String], in incoming: Directory) throws(CofferError) -> InstallIntent {
        var names: [String] = []
        do throws(CofferError) {
            if attachments.count < Self.wholeSyncThreshold {
                for attachment in attachments {
                    names.append(try IncomingName.announcing(attachment))
                    _ = try createIntent(names[names.count - 1], in: incoming)
                }
            } else {
                for start in stride(from: 0, to: attachments.count, by: InstallIntentList.nameLimit) {
                    let end = min(start + InstallIntentList.nameLimit, attachments.count)
                    names.append(try IncomingName.list())
                    let file = try createIntent(names[names.count - 1], in: incoming)
                    let bytes = try InstallIntentList.bytes(of: Array(attachments[start..<end]), in: naming.kind)
                    try unsafe fileSystem.write(bytes.span.bytes, to: file)
                    try synchronizing { () throws(CofferError) in try fileSystem.synchronize(file) }
                }
            }
            try synchronizing { () throws(CofferError) in try fileSystem.synchronize(incoming) }
        } catch {
            withdraw(InstallIntent(names), from: incoming)
            throw error
        }
        return InstallIntent(names)
    }

    /// Removes what announces files: only when each of them has a row, or is gone from `attachments/` for good.
    ///
    /// If it comes back in a power cut, or can't be removed, the next open finds that out and removes it. Once more has no
    /// effect.
    func withdraw(_ intent: InstallIntent, from incoming: Directory) {
        guard !intent.isWithdrawn.exchange(true, ordering: .relaxed) else { return }
        for name in intent.names { try? fileSystem.unlink(name, in: incoming) }
    }

    private func createIntent(_ name: String, in incoming: Directory) throws(CofferError) -> File {
        let file = try fileSystem.createFile(name, in: incoming)
        try fileSystem.hand(file, to: owner)
        return file
    }
}

/// The names of files in `incoming/`.
enum IncomingName {
    private static let listSuffix = ".list"

    /// Of content that is being written, or waits to be installed.
    static func random() throws(CofferError) -> String { hexadecimal(try randomNumber()) }

    /// Of an empty file that announces the one called `name` in `attachments/`.
    static func announcing(_ name: String) throws(CofferError) -> String { "\(name).\(try random())" }

    /// Of a list that announces several.
    static func list() throws(CofferError) -> String { "\(try random())\(listSuffix)" }

    /// The name of the file in `attachments/` that a file of this name in `incoming/` announces, if it does.
    static func announced(by name: String, in names: Manifest.AttachmentNames) -> String? {
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")) else { return nil }
        let announced = String(name[..<dot])
        return AttachmentNaming.isWellFormed(announced, in: names) ? announced : nil
    }

    /// Whether a file of this name is a list, if it is a file.
    static func isList(_ name: String) -> Bool {
        let digits = name.utf8.dropLast(listSuffix.utf8.count)
        return digits.count == 16 && digits.allSatisfy(\.isLowerCaseHexDigit)
            && name.utf8.suffix(listSuffix.utf8.count).elementsEqual(listSuffix.utf8)
    }
}

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
