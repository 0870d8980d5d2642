import Coffer
@testable import CofferSealing
import Foundation

/// The file of an attachment, changed: reading brings what was attached, or it is *damaged*.
///
/// The first byte says whether the others replace the file or are changes of it.
enum AttachmentHarness {
    private static let opened: (attachment: Coffer.Attachment, file: URL, bytes: Data) = {
        do {
            let base = try BaseStore(key: BaseStore.key(7), hasLog: false)
            let url = BaseStore.directory.appending(path: "attachment.coffer", directoryHint: .isDirectory)
            try base.write(to: url)
            var options = DatabaseOptions()
            options.encryptionKey = base.key
            options.readOnly = true
            let database = try Manager(directory: BaseStore.directory).openDatabase(
                named: "attachment", options: options)
            guard let attachment = try database["photo"]?.currentRevision?.attachment(named: "photo"),
                let file = base.files.first(where: { $0.path.hasSuffix(".blob") }), let bytes = file.content
            else { fatalError("the store has no attachment") }
            return (attachment, url.appending(path: file.path), bytes)
        } catch { fatalError("\(error)") }
    }()

    @Sendable static func run(_ input: [UInt8]) throws {
        let (attachment, file, whole) = opened
        var choices = Choices(input[...])
        var changed = whole
        let kind = choices.byte()
        let start = choices.number(below: BaseStore.photo.count + 1)
        let end = start + choices.number(below: BaseStore.photo.count + 1 - start)
        if kind % 8 == 7 {
            changed = Data(choices.rest)
        } else {
            for _ in 0..<kind % 8 {
                Change(&choices, size: changed.count, unit: 16_400, start: 56).apply(to: &changed)
            }
        }
        try changed.write(to: file)

        check(isChanged: changed != whole) { try attachment.content == BaseStore.photo }
        check(isChanged: false) {
            try attachment.content(in: start..<end) == BaseStore.photo.subdata(in: start..<end)
        }
        if kind & 64 != 0 {
            check(isChanged: changed != whole) {
                var all = Data()
                try attachment.chunks?.forEach { all += $0 }
                return all == BaseStore.photo
            }
        }
        if changed == whole { expect((try? attachment.content) == BaseStore.photo, "what wasn't changed is damaged") }
    }

    private static func check(isChanged: Bool, _ isRight: () throws -> Bool) {
        do {
            expect(try isRight(), "a reading brings other bytes than were attached")
            expect(!isChanged, "a file that was changed is read to its end")
        } catch {
            expect((error as? CofferError)?.code == .damaged, "reading a changed file is \(error)")
        }
    }
}
