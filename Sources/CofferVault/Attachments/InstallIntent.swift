internal import CofferSealing
internal import Synchronization

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
