@testable import Coffer
@testable import CofferRecords
import Foundation

/// Pages and rows of a database as a salvage reads them: any bytes, and whole stores with changed files. It ends, makes a
/// store that is sound, and takes nothing that was not written; of a store that is not encrypted, nothing that could not be.
enum SalvageHarness {
    private static let broken = BaseStore.directory.appending(path: "broken.coffer", directoryHint: .isDirectory)
    private static let out = BaseStore.directory.appending(path: "out.coffer", directoryHint: .isDirectory)

    @Sendable static func run(_ input: [UInt8]) throws {
        var choices = Choices(input[...])
        let kind = choices.byte()
        if kind & 8 != 0 {
            parse(choices.rest, isFirst: kind & 4 != 0)
            return
        }
        let base = BaseStore.all[Int(kind % 4)]
        try write(base, changed: 1 + Int(kind >> 5), &choices)
        let result = salvage(base)
        if let result { check(base, result) }
        for url in [broken, out] { try? FileManager.default.removeItem(at: url) }
    }

    private static func write(_ base: BaseStore, changed count: Int, _ choices: inout Choices) throws {
        var contents = base.files.map(\.content)
        // Anything but MANIFEST, without which nothing is tried.
        let names = base.files.indices.filter { contents[$0] != nil && !base.files[$0].path.hasSuffix("MANIFEST") }
        for _ in 0..<count {
            let index = names[choices.number(below: names.count)]
            if choices.byte() % 32 == 31 {
                contents[index] = nil
            } else if var content = contents[index] {
                Change(&choices, size: content.count, unit: 4096, start: 0).apply(to: &content)
                contents[index] = content
            }
        }
        let byPath = Dictionary(uniqueKeysWithValues: zip(base.files.map(\.path), contents))
        try base.write(to: broken) { path, content in
            guard let new = byPath[path] ?? nil else { return false }
            content = new
            return true
        }
    }

    private static func salvage(_ base: BaseStore) -> Salvage? {
        do {
            return try BaseStore.manager.salvageDatabase(named: "broken", encryptionKey: base.key, to: out)
        } catch {
            // Only a readable one can say that it is another store's.
            let isAnothers = error.code == .damaged && base.key == nil
            expect(isAnothers, "a salvage ends with \(error)")
            return nil
        }
    }

    private static func check(_ base: BaseStore, _ result: Salvage) {
        do {
            let findings = try BaseStore.manager.verifyDatabase(named: "out", encryptionKey: base.key).findings
            expect(findings.isEmpty, "what was salvaged is damaged: \(findings)")
            var options = DatabaseOptions()
            options.encryptionKey = base.key
            options.readOnly = true
            let database = try BaseStore.manager.openDatabase(named: "out", options: options)
            defer { try? database.close() }
            expect(try database.documentCount == result.documentCount, "another count of documents")
            guard base.key != nil else { return }
            let known = ["long", "photo", "short", "torn", "salvaged-attachments", "gone"]
            let ids = try database.allDocuments().all.map(\.document.documentID)
            expect(ids.allSatisfy(known.contains), "a document that was never written")
            expect([nil, 1, 2].contains(try database["short"]?["n"] as Int?), "another number")
            let long = try database["long"]?.currentRevision?.json
            expect(long == nil || long == BaseStore.long, "another text")
            expect([nil, 3].contains(try database["torn"]?["n"] as Int?), "another foreign revision")
            let photo = try database["photo"]?.currentRevision?.attachment(named: "photo")?.content
            expect(photo == nil || photo == BaseStore.photo, "another attachment")
            let local: Int? = try database.localDocument(withID: "local")?["n"]
            expect(local == nil || local == 1, "another local document")
        } catch { fatalError("what was salvaged can't be read: \(error)") }
    }

    private static func parse(_ bytes: [UInt8], isFirst: Bool) {
        _ = Record(bytes)
        _ = Record(bytes, isWhole: false)
        let page = Array((bytes + [UInt8](repeating: 0, count: max(0, 4048 - bytes.count))).prefix(4048))
        guard let tree = TreePage(page, number: isFirst ? 1 : 2) else { return }
        for cell in tree.cells {
            expect(
                cell.local.upperBound <= page.count && cell.byteCount >= cell.local.count, "a row outside of its page")
            guard let record = Record(Array(page[cell.local]), isWhole: false) else { continue }
            if case .revision(let revision)? = try? FoundRow(record, rowID: cell.rowID) {
                expect(revision.document.firstSequence <= revision.sequence, "a revision before its document")
            }
        }
    }
}
