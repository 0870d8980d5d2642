import Coffer
@testable import CofferSealing
import Foundation

/// A whole store with changed files, opened through the public API with the right key: what was written, or an error;
/// never a 401 where MANIFEST is as it was. Of a store without encryption nothing checks the bytes: there it is about
/// what SQLite, and the code that reads its rows, make of them.
enum StoreHarness {
    @Sendable static func run(_ input: [UInt8]) throws {
        var choices = Choices(input[...])
        let kind = choices.byte()
        let base = BaseStore.all[Int(kind % 4)]
        var changed: Set<String> = []
        var contents = base.files.map(\.content)
        let names = base.files.indices.filter { contents[$0] != nil }
        for _ in 0..<1 + Int(kind >> 6) {
            let index = names[choices.number(below: names.count)]
            let what = choices.byte()
            let before = contents[index]
            if what % 16 == 15 {
                contents[index] = nil
            } else if var content = contents[index] {
                Change(&choices, size: content.count, unit: 4096, start: 0).apply(to: &content)
                contents[index] = content
            }
            if contents[index] != before { changed.insert((base.files[index].path as NSString).lastPathComponent) }
        }

        let url = BaseStore.directory.appending(path: "store.coffer", directoryHint: .isDirectory)
        defer { try? FileManager.default.removeItem(at: url) }
        let byPath = Dictionary(uniqueKeysWithValues: zip(base.files.map(\.path), contents))
        try base.write(to: url) { path, content in
            guard let new = byPath[path] ?? nil else { return false }
            content = new
            return true
        }
        var options = DatabaseOptions()
        options.encryptionKey = base.key
        options.readOnly = kind & 4 != 0
        Reading(base, changed).run { try BaseStore.manager.openDatabase(named: "store", options: options) }
    }

    private struct Reading {
        let isEncrypted: Bool
        let hasLog: Bool
        let changed: Set<String>

        init(_ base: BaseStore, _ changed: Set<String>) {
            isEncrypted = base.key != nil
            hasLog = base.files.contains { $0.path.hasSuffix("-wal") && $0.content?.isEmpty == false }
            self.changed = changed
        }

        func run(_ open: () throws -> Database) {
            do {
                let database = try open()
                check { [hasLog ? 2 : 1, logMayEnd ? 1 : nil].contains(try number(in: database)) }
                check { try database["long"]?.currentRevision?.json == BaseStore.long }
                check { try database["gone"] == nil }
                check { try database["torn"]?["n"] == 3 }
                check { try database.document(withID: "torn").conflictingRevisions.count == 2 }
                check { try database["photo"]?.currentRevision?.attachment(named: "photo")?.content == BaseStore.photo }
                check {
                    try database.allDocuments().all.map(\.document.documentID) == ["long", "photo", "short", "torn"]
                }
                check { try database.changes(since: 0).all.count == 5 }
                check { try database.documentCount == 4 }
                check { try database.localDocument(withID: "local") == ["n": 1] }
                if !database.isReadOnly {
                    check {
                        try database.save(json: Data("{}".utf8), withID: "new")
                        return try database["new"] != nil
                    }
                    check {
                        try database.compact()
                        return true
                    }
                }
                check {
                    try database.close()
                    return true
                }
            } catch {
                expectDamage(error)
            }
        }

        /// A frame of the log that is damaged ends it, as a crash would.
        private var logMayEnd: Bool { hasLog && changed.contains { $0.hasSuffix("-wal") || $0.hasSuffix("-shm") } }

        private func number(in database: Database) throws -> Int? { try database["short"]?["n"] }

        private func check(_ isRight: () throws -> Bool) {
            do {
                let isRight = try isRight()
                expect(isRight || !isEncrypted, "other data than was written")
                expect(isRight || !changed.isEmpty, "other data though nothing was changed")
            } catch {
                expectDamage(error)
            }
        }

        private func expectDamage(_ error: any Error) {
            guard let error = error as? CofferError else { fatalError("not one of ours: \(error)") }
            expect(!changed.isEmpty, "an error though nothing was changed: \(error)")
            if changed.contains("MANIFEST") { return }
            let codes: [CofferError.Code] = [
                .damaged, .reopenRequired, .closed, .unsupportedFormat, .revisionNotFound, .conflict, .ioFailed,
                // A row of a content that says another digest.
                .attachmentNotFound,
            ]
            expect(isEncrypted ? codes[0..<3].contains(error.code) : codes.contains(error.code), "\(error)")
        }
    }
}
