internal import Coffer
internal import Foundation

/// Writing and reading many attachments, each the only one of its document.
struct ManyAttachments {
    private let bench: Bench
    private let contents: Contents

    /// Of 1 MB.
    init(long bench: Bench) {
        self.bench = bench
        contents = Contents(count: bench.size(200, quick: 30), byteCount: 1_000_000)
    }

    /// Of 10 KB.
    init(short bench: Bench) {
        self.bench = bench
        contents = Contents(count: bench.size(2_000, quick: 200), byteCount: 10_000)
    }

    private var size: String {
        let count = contents.all.count
        return contents.byteCount < 1_000_000 ? "\(count) × \(contents.byteCount / 1_000) KB" : "\(count) × 1 MB"
    }

    // MARK: Rows

    /// Into one transaction, against files and one syncfs.
    func writing() throws -> Row {
        bench.say("writing attachments …")
        let comparison = try compareWriting(withFsync: false)
        return Row(
            "attachment write, \(size)", comparison, atLeast: 0.8,
            explanation: """
                one transaction of as many documents, durable when it ends; by hand: SHA-1, SHA-256 and AES-256-GCM into \
                one file each, then one syncfs, no database. Contents are in memory, and all are read back and compared \
                after each round
                """)
    }

    /// Into one transaction, against an fsync for each file.
    func writingShort() throws -> Row {
        bench.say("writing short attachments …")
        let comparison = try compareWriting(withFsync: true)
        return Row(
            "attachment write, \(size)", comparison, atLeast: 5, isMeaningful: bench.machine.isFsyncReal,
            explanation: """
                one transaction of as many documents; by hand: the same digests and encryption, one fsync for each file. \
                Meant for disks whose fsync takes 100 µs or more: here \(Int(bench.machine.fsyncMicroseconds)) µs
                """)
    }

    func reading() throws -> Row {
        bench.say("reading attachments …")
        let database = try bench.newStore()
        let folder = try bench.newFolder()
        try write(to: database)
        try writeByHand(to: folder, withFsync: false)
        try bench.settle()
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            try readByHand(from: folder)
        } own: {
            try read(from: database)
        }
        try database.close()
        return Row(
            "attachment read, \(size)", comparison, atLeast: 0.8,
            explanation: """
                `content` of the document's attachment, looked up by id each time, all of Coffer's checks; by hand: a \
                loop of AES-256-GCM over a file of the same pieces, into one buffer that is used again, no digest, no \
                database. Every byte is compared, outside of the times
                """)
    }

    private func compareWriting(withFsync: Bool) throws -> Comparison {
        try Comparison.run(roundCount: bench.settings.roundCount) {
            let folder = try bench.newFolder()
            try bench.settle()
            let cost = try measure { try writeByHand(to: folder, withFsync: withFsync) }
            _ = try readByHand(from: folder)
            return cost
        } own: {
            let database = try bench.newStore()
            try bench.settle()
            let cost = try measure { try write(to: database) }
            _ = try read(from: database)
            try database.close()
            return cost
        }
    }

    // MARK: With Coffer

    private func write(to database: Database) throws {
        try database.inTransaction {
            for (index, content) in contents.all.enumerated() {
                let draft = try database.document(withID: Self.name(index)).newRevision()
                draft.setAttachment(named: "content", contentType: "application/octet-stream", content: content)
                try draft.save()
            }
        }
    }

    /// How long reading took, without the comparing.
    private func read(from database: Database) throws -> Cost {
        var cost = Cost()
        for (index, content) in contents.all.enumerated() {
            var read: Data?
            cost += try measure {
                read = try database[Self.name(index)]?.currentRevision?.attachment(named: "content")?.content
            }
            try expect(read == content, "attachment \(index) isn't what was attached")
        }
        return cost
    }

    // MARK: By hand

    private func writeByHand(to folder: Folder, withFsync: Bool) throws {
        for (index, content) in contents.all.enumerated() {
            try bench.byHand.write(content, as: Self.name(index), in: folder, withFsync: withFsync)
        }
        if !withFsync { try bench.byHand.syncAll(folder) }
    }

    private func readByHand(from folder: Folder) throws -> Cost {
        var cost = Cost()
        var output = Data(count: contents.byteCount)
        for (index, content) in contents.all.enumerated() {
            output.resetBytes(in: 0..<output.count)
            cost += try measure { try bench.byHand.read(Self.name(index), in: folder, into: &output) }
            try expect(output == content, "file \(index) isn't what was written")
        }
        return cost
    }

    private static func name(_ index: Int) -> String { "document-\(index)" }
}
