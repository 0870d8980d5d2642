import CofferModel
import Foundation
import Testing

@testable import Coffer

/// Whoever can write the disk can put a single page back that stood in the same place before: under the same key it passes its
/// check. An index's page of then leads to rows that are something else's now.
@Suite("Pages of another state of the same store")
struct ReplayedPageTests {
    private static let ids = ["x", "y"]

    private static func content(_ id: String) -> Data { Data(String(repeating: "content of \(id) ", count: 500).utf8) }

    /// Two states of one store that hold the same, in rows of other numbers.
    private func states(_ stores: TestStores) throws -> (older: Data, newer: Data) {
        let database = try stores.open { $0.compactsInBackground = false }
        try fill(database, Self.ids)
        try database.close()
        let older = try Data(contentsOf: stores.databaseFile())
        let again = try stores.open { $0.compactsInBackground = false }
        for id in Self.ids {
            try again.document(withID: id).purge()
            try again.deleteLocalDocument(withID: id)
        }
        try again.compact()
        try fill(again, Self.ids.reversed())
        try again.close()
        return (older, try Data(contentsOf: stores.databaseFile()))
    }

    private func fill(_ database: Database, _ ids: [String]) throws {
        for id in ids {
            let draft = try database.document(withID: id).newRevision()
            draft["name"] = .string(id)
            draft.setAttachment(named: "a", contentType: nil, content: Self.content(id))
            try draft.save()
            try database.saveLocalDocument(["name": .string(id)], withID: id)
        }
    }

    /// What was read: how much of it was right, and what was something else's.
    private struct Outcome {
        var rightCount = 0
        var wrong: [String] = []

        mutating func take<Value: Equatable>(_ what: String, expected: Value, _ read: () throws -> Value?) {
            // An error, and what is not there, is no other's.
            guard let found = try? read() else { return }
            if found == expected { rightCount += 1 } else { wrong.append(what) }
        }
    }

    private func read(_ stores: TestStores) -> Outcome {
        var outcome = Outcome()
        let opened = try? stores.open { ($0.create, $0.compactsInBackground) = (false, false) }
        guard let database = opened else { return outcome }
        for id in Self.ids {
            outcome.take("document \(id)", expected: JSONValue.string(id)) { try database[id]?["name"] }
            outcome.take("attachment of \(id)", expected: Self.content(id)) {
                try database[id]?.currentRevision?.attachment(named: "a")?.content
            }
            outcome.take("local document \(id)", expected: JSONValue.string(id)) {
                try database.localDocument(withID: id)?["name"]
            }
        }
        try? database.close()
        return outcome
    }

    @Test(
        "A page that is put back makes nothing of another's be read, whatever the files of attachments are called",
        arguments: [true, false])
    func singlePages(putsBackOlder: Bool) throws {
        let stores = TestStores()
        let states = try states(stores)
        let whole = try stores.snapshotOfFiles()
        let (base, other) = putsBackOlder ? (states.newer, states.older) : (states.older, states.newer)
        let pages = (0..<min(base.count, other.count) / 4096).filter {
            base[$0 * 4096..<$0 * 4096 + 4096] != other[$0 * 4096..<$0 * 4096 + 4096]
        }
        try #require(pages.count > 4)
        var rightCount = 0
        for page in pages {
            for exchangesFiles in [false, true] {
                try stores.restore(whole)
                var bytes = base
                bytes.replaceSubrange(page * 4096..<page * 4096 + 4096, with: other[page * 4096..<page * 4096 + 4096])
                try bytes.write(to: stores.databaseFile())
                if exchangesFiles { try exchangeFiles(stores) }
                let outcome = read(stores)
                #expect(outcome.wrong == [], "page \(page + 1), files exchanged: \(exchangesFiles)")
                rightCount += outcome.rightCount
            }
        }
        // The same reading finds all of it where nothing was put back, and much where one page was.
        #expect(rightCount > pages.count)
        try stores.restore(whole)
        #expect(read(stores).rightCount == 6)
    }

    /// Gives each of the two files of attachments the name of the other.
    private func exchangeFiles(_ stores: TestStores) throws {
        let folder = try stores.generation().appending(path: "attachments")
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        try #require(files.count == 2)
        let contents = try files.map { try Data(contentsOf: $0) }
        for (file, content) in zip(files, contents.reversed()) { try content.write(to: file) }
    }
}

extension TestStores {
    /// The bytes of every file below this directory.
    fileprivate func snapshotOfFiles() throws -> [URL: Data] {
        let enumerator = FileManager.default.enumerator(at: directory, includingPropertiesForKeys: [.isRegularFileKey])
        var files: [URL: Data] = [:]
        while let url = enumerator?.nextObject() as? URL {
            guard try url.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true else { continue }
            files[url] = try Data(contentsOf: url)
        }
        return files
    }

    /// Has the files be these again. The folders are there.
    fileprivate func restore(_ files: [URL: Data]) throws {
        for url in try snapshotOfFiles().keys where files[url] == nil { try FileManager.default.removeItem(at: url) }
        for (url, content) in files { try content.write(to: url) }
    }
}
