internal import CByHand
internal import Coffer
internal import Dispatch
internal import Foundation
internal import Synchronization

/// Encrypting a whole store anew, and how long others wait to write meanwhile.
struct KeyChangeRow {
    private let bench: Bench
    private let documentCount: Int
    private let contents: Contents
    private let database: Database
    /// The same database and the same contents, by hand.
    private let copy: String
    private let folder: Folder

    private static let attachmentSize = 1_000_000
    private static let hexKey = String(repeating: "5a", count: 32)

    init(_ bench: Bench) throws {
        bench.say("changing keys …")
        self.bench = bench
        documentCount = bench.size(400_000, quick: 10_000)
        contents = Contents(count: bench.size(1_000, quick: 30), byteCount: Self.attachmentSize)
        let name = bench.newName("rekeyed")
        var options = DatabaseOptions()
        options.create = true
        let plain = try Manager(directory: bench.directory).openDatabase(named: name, options: options)
        try Self.fill(plain, documentCount, contents)

        // Still readable, so that its file can be copied by hand: the same rows and the same indexes.
        copy = bench.newPath("database")
        try plain.close()
        let store = bench.directory.appending(path: "\(name).coffer")
        let generations = try FileManager.default.contentsOfDirectory(atPath: store.path).filter { $0.hasPrefix("g") }
        try expect(generations.count == 1, "one generation")
        let file = store.appending(path: generations[0]).appending(path: "db.sqlite3").path
        try expect(unsafe by_hand_export(file, nil, copy, Self.hexKey), "copying the database failed")
        folder = try bench.newFolder()
        for (index, content) in contents.all.enumerated() {
            try bench.byHand.write(content, as: "\(index)", in: folder, withFsync: false)
        }
        options.create = false
        database = try Manager(directory: bench.directory).openDatabase(named: name, options: options)
        try database.changeEncryptionKey(to: try SymmetricKey())
        try bench.settle()
    }

    private static func fill(_ database: Database, _ documentCount: Int, _ contents: Contents) throws {
        let text = String(repeating: "0123456789abcdef", count: 29)
        for start in stride(from: 0, to: documentCount, by: 10_000) {
            try database.inTransaction {
                for number in start..<min(start + 10_000, documentCount) {
                    try database.save(json: Data(#"{"number":\#(number),"text":"\#(text)"}"#.utf8))
                }
            }
        }
        try database.inTransaction {
            for (index, content) in contents.all.enumerated() {
                let draft = try database.document(withID: "file-\(index)").newRevision()
                draft.setAttachment(named: "content", contentType: nil, content: content)
                try draft.save()
            }
        }
    }

    func rows() throws -> [Row] {
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            try bench.settle()
            return try measure { try changeByHand() }
        } own: {
            try bench.settle()
            return try measure { try database.changeEncryptionKey(to: try SymmetricKey()) }
        }
        let size = "\(documentCount * 500 / 1_000_000) MB and \(contents.all.count) × 1 MB"
        let row = Row(
            "key change, \(size)", comparison, atLeast: 0.7,
            explanation: """
                changeEncryptionKey with a raw key, all of its checks and syncs; by hand: each file decrypted, digested with \
                SHA-256 and encrypted on as many threads, one sqlcipher_export of the same rows, one syncfs
                """)
        let waiting = try waitingRow(size)
        try database.close()
        return [row, waiting]
    }

    private func changeByHand() throws {
        let target = try bench.newFolder()
        let next = Atomic(0)
        let failures = Atomic(0)
        let contexts = try (0..<ProcessInfo.processInfo.activeProcessorCount).map { _ in
            try bench.byHand.forAnotherThread()
        }
        let (folder, count) = (folder, contents.all.count)
        DispatchQueue.concurrentPerform(iterations: contexts.count) { thread in
            while true {
                let index = next.add(1, ordering: .relaxed).oldValue
                guard index < count else { break }
                do {
                    try contexts[thread].recode("\(index)", in: folder, to: target, byteCount: Self.attachmentSize)
                } catch {
                    failures.add(1, ordering: .relaxed)
                }
            }
        }
        try expect(failures.load(ordering: .relaxed) == 0, "encrypting anew by hand failed")
        let newKey = String(repeating: "a5", count: 32)
        try expect(
            unsafe by_hand_export(copy, Self.hexKey, bench.newPath("database"), newKey), "copying the database failed")
        try bench.byHand.syncAll(target)
    }

    /// The longest that a writer waits while the key is changed, against how long the change takes.
    private func waitingRow(_ size: String) throws -> Row {
        var shares: [Double] = []
        for _ in 0..<3 {
            let isDone = Atomic(false)
            let longest = Mutex(Duration.zero)
            let group = DispatchGroup()
            let database = database
            Thread {
                group.enter()
                while !isDone.load(ordering: .acquiring) {
                    let time = ContinuousClock().measure {
                        _ = try? database.save(json: Data(#"{"n":1}"#.utf8), withID: "waiting")
                    }
                    longest.withLock { $0 = max($0, time) }
                    Thread.sleep(forTimeInterval: 0.005)
                }
                group.leave()
            }.start()
            Thread.sleep(forTimeInterval: 0.05)
            let time = try ContinuousClock().measure { try database.changeEncryptionKey(to: try SymmetricKey()) }
            isDone.store(true, ordering: .releasing)
            group.wait()
            shares.append(longest.withLock(\.self) / time)
        }
        return Row(
            "key change, writers wait, \(size)", shares, .partOfItsTime, .atMost(1),
            explanation: """
                the longest that a save took beside a key change, as a share of the change: the database's copying and \
                checking, not the attachments'. Nothing to compare with; the target only says that it is no more than all
                """)
    }
}
