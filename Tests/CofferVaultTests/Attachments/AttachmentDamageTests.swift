import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

/// COFFER_EXHAUSTIVE=1 tries every place where otherwise a sample is tried.
private let isExhaustive = ProcessInfo.processInfo.environment["COFFER_EXHAUSTIVE"] == "1"

@Suite("An attachment's file that is not what was written")
struct AttachmentDamageTests {
    /// Asks everything that can be asked of an attachment: each answer is damage, named. Only ranges in other chunks than
    /// those in `changed` can be read, and are right then; nil means that nothing can be.
    private func check(
        _ fixture: AttachmentFixture, _ saved: StagedAttachment, _ bytes: [UInt8], changed: Set<Int>? = nil,
        _ comment: Comment
    ) {
        let isEncrypted = fixture.attachments.isEncrypted
        let whole: [(AttachmentReader) throws -> [UInt8]] = [
            { try $0.wholeContent() }, { try $0.wholeContent(checking: .tags) }, { try read($0, pieces: 5000) },
            { try read($0, pieces: 20000, checking: .tags) },
        ]
        for read in whole { expectDamage(comment) { _ = try read(fixture.open(saved)) } }
        // Without tags, ranges are only as good as the disk.
        guard isEncrypted else { return }
        for start in stride(from: 0, to: bytes.count, by: 5000) {
            let range = start..<min(bytes.count, start + 3000)
            let chunks = start / 16384...(range.upperBound - 1) / 16384
            if let changed, changed.isDisjoint(with: chunks) {
                #expect((try? fixture.open(saved).bytes(in: range)) == Array(bytes[range]), comment)
            } else {
                expectDamage(comment) { _ = try fixture.open(saved).bytes(in: range) }
            }
        }
    }

    private func expectDamage(_ comment: Comment, _ body: () throws -> Void) {
        let error = #expect(throws: CofferError(.damaged), comment, performing: body)
        #expect(error?.subject == subject, comment)
    }

    private func change(_ path: String, _ body: (inout [UInt8]) -> Void) throws {
        var bytes = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
        body(&bytes)
        // In place: a file that can't be written is no obstacle to whoever damages it.
        _ = chmod(path, 0o600)
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    @Test(
        "An attachment is damaged because a bit of it is another: each bit of a short one", arguments: [true, false],
        [0, 1, 40])
    func shortFlips(isEncrypted: Bool, size: Int) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted, in: .inMemory)
        let bytes = content(size)
        let saved = try fixture.save(bytes)
        let path = try fixture.path(of: saved)
        let count = isEncrypted ? size + 72 : size
        for bit in 0..<count * 8 {
            try change(path) { $0[bit / 8] ^= 1 << (bit % 8) }
            check(fixture, saved, bytes, "bit \(bit)")
            try change(path) { $0[bit / 8] ^= 1 << (bit % 8) }
        }
        #expect(try fixture.open(saved).wholeContent() == bytes)
    }

    @Test(
        "An attachment is damaged because a bit of it is another: in each part of a long one", arguments: [true, false])
    func longFlips(isEncrypted: Bool) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted, in: .inMemory)
        let bytes = content(2 * 16384 + 500)
        let saved = try fixture.save(bytes)
        let path = try fixture.path(of: saved)
        let stored = isEncrypted ? 56 + bytes.count + 48 : bytes.count
        let ends = [0, 23, 24, 55, 56, 57, 16439, 16440, 16455, 16456, 32839, 32840, 32856, stored - 17, stored - 1]
        for place in isExhaustive ? Array(0..<stored) : ends + Array(stride(from: 100, to: stored, by: 1499))
        where place < stored {
            let bit = UInt8(1) << (place % 8)
            try change(path) { $0[place] ^= bit }
            // Of the header, and of the last chunk, every read says so.
            let chunk = (place - 56) / 16400
            let changed: Set<Int>? = place < 56 || chunk == 2 ? nil : [chunk]
            check(fixture, saved, bytes, changed: changed, "byte \(place)")
            try change(path) { $0[place] ^= bit }
        }
    }

    @Test("Damage is found in either half of a content that two threads read, and nothing of it is handed out")
    func halves() throws {
        let fixture = try AttachmentFixture(in: .inMemory)
        let bytes = content(20 * 16384 + 500)
        let saved = try fixture.save(bytes)
        let path = try fixture.path(of: saved)
        for chunks in [[0], [9], [10], [11], [19], [20], [3, 15], [0, 20]] {
            for chunk in chunks { try change(path) { $0[56 + chunk * 16400 + 100] ^= 1 } }
            var output = [UInt8](repeating: 0xAA, count: bytes.count)
            var span = output.mutableSpan
            let error = #expect(throws: CofferError(.damaged), "chunks \(chunks)") {
                try span.withUnsafeMutableBytes { (bytes) throws(CofferError) in
                    try fixture.openForTwo(saved).readWhole(into: bytes, checking: .tags)
                }
            }
            #expect(error?.subject == subject)
            #expect(error?.detail?.contains("its bytes from \(chunks[0] * 16384) to") == true, "chunks \(chunks)")
            #expect(!output.contains { $0 != 0 }, "chunks \(chunks)")
            for chunk in chunks { try change(path) { $0[56 + chunk * 16400 + 100] ^= 1 } }
        }
    }

    @Test("A content that two threads could read has its digest checked where that is asked for, or there are no tags")
    func digestsOfLongOnes() throws {
        let bytes = content(20 * 16384 + 500)
        let plain = try AttachmentFixture(isEncrypted: false, in: .inMemory)
        let saved = try plain.save(bytes)
        try change(plain.path(of: saved)) { $0[300_000] ^= 1 }
        expectDamage("not encrypted") { _ = try plain.openForTwo(saved).wholeContent(checking: .tags) }

        let other = try AttachmentFixture(in: .inMemory) { digest in
            ContentDigest(sha1: digest.sha1, sha256: digest.sha256.reversed(), byteCount: digest.byteCount)
        }
        let wrong = try other.save(bytes)
        #expect(try other.openForTwo(wrong).wholeContent(checking: .tags) == bytes)
        expectDamage("of another digest") { _ = try other.openForTwo(wrong).wholeContent(checking: .digest) }
    }

    @Test(
        "An attachment is damaged because it was cut, anywhere, or something was added", arguments: [true, false],
        [0, 1, 40, 16384, 32768])
    func lengths(isEncrypted: Bool, size: Int) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted, in: .inMemory)
        let bytes = content(size)
        let saved = try fixture.save(bytes)
        let path = try fixture.path(of: saved)
        let whole = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
        let ends = [0, 1, 55, 56, 57, 71, 72, 16455, 16456, 16457, 16472, 32855, 32856, 32872]
        let cuts = size < 100 || isExhaustive ? Array(0..<whole.count) : ends + [whole.count - 16, whole.count - 1]
        for cut in cuts where cut < whole.count {
            try change(path) { $0 = Array(whole[..<cut]) }
            check(fixture, saved, bytes, "cut to \(cut)")
        }
        for more in [1, 15, 16, 17, 16384, 16400] {
            try change(path) { $0 = whole + [UInt8](repeating: 0, count: more) }
            check(fixture, saved, bytes, "\(more) added")
        }
    }

    @Test("An attachment is damaged because its chunks were swapped, dropped or doubled")
    func chunks() throws {
        let fixture = try AttachmentFixture(in: .inMemory)
        let bytes = content(3 * 16384 + 16383)
        let saved = try fixture.save(bytes)
        let path = try fixture.path(of: saved)
        let whole = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
        let header = Array(whole[..<56])
        let chunks = (0..<4).map { Array(whole[(56 + $0 * 16400)..<min(whole.count, 56 + ($0 + 1) * 16400)]) }
        let orders = [
            [1, 0, 2, 3], [0, 2, 1, 3], [2, 1, 0, 3], [0, 0, 2, 3], [0, 1, 1, 3], [0, 1, 3, 2], [0, 1, 2], [1, 2, 3],
            [0, 1, 2, 3, 3], [0, 1, 2, 2, 3], [3], [],
        ]
        for order in orders {
            try change(path) { $0 = header + order.flatMap { chunks[$0] } }
            // A file of another length, or with another end, is refused as a whole.
            let isOpened = order.count == 4 && order[3] == 3
            let changed = isOpened ? Set((0..<4).filter { order[$0] != $0 }) : nil
            check(fixture, saved, bytes, changed: changed, "\(order)")
        }
    }

    @Test("An attachment is damaged because another is in its place: of the same length, of another store, or older")
    func replaced() throws {
        let fixture = try AttachmentFixture()
        let size = 20000
        let bytes = content(size)
        let saved = try fixture.save(bytes)
        let path = try fixture.path(of: saved)
        let original = try Data(contentsOf: URL(fileURLWithPath: path))

        let other = try fixture.save(content(size, seed: 2))
        let others = try [UInt8](Data(contentsOf: URL(fileURLWithPath: fixture.path(of: other))))
        try change(path) { $0 = others }
        check(fixture, saved, bytes, "another attachment's")

        // The same content, encrypted once more: what somebody kept of an earlier time.
        let again = try fixture.stage(bytes)
        #expect(again.header != saved.header)
        let name = try #require(fixture.incoming.first)
        let older = try Data(contentsOf: URL(fileURLWithPath: "\(fixture.generation)/incoming/\(name)"))
        try change(path) { $0 = [UInt8](older) }
        check(fixture, saved, bytes, "an older encryption")
        // It is whole by itself, so that only the row tells that it isn't the one.
        #expect(try again.open().wholeContent() == bytes)

        let elsewhere = try AttachmentFixture()
        let theirs = try elsewhere.save(bytes)
        let foreign = try Data(contentsOf: URL(fileURLWithPath: elsewhere.path(of: theirs)))
        try change(path) { $0 = [UInt8](foreign) }
        check(fixture, saved, bytes, "another store's")
        // Even with a row that means it.
        expectDamage("another store's, and its row") {
            _ = try fixture.attachments.open(theirs.digest, header: theirs.header, subject: subject)
        }

        // The header alone of the right one.
        try change(path) { $0 = Array(original.prefix(56)) + foreign.dropFirst(56) }
        check(fixture, saved, bytes, "another store's behind its header")
        try change(path) { $0 = [UInt8](original) }
        #expect(try fixture.open(saved).wholeContent() == bytes)
    }

    @Test("An attachment that is not encrypted is damaged because content of the same length is in its place")
    func replacedPlain() throws {
        let fixture = try AttachmentFixture(isEncrypted: false)
        let saved = try fixture.save(content(20000))
        try change(fixture.path(of: saved)) { $0 = content(20000, seed: 2) }
        check(fixture, saved, content(20000), "another content")
    }

    @Test("An attachment is damaged because there is no file, or something else", arguments: [true, false])
    func missing(isEncrypted: Bool) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted)
        let bytes = content(100)
        let saved = try fixture.save(bytes)
        let path = try fixture.path(of: saved)
        let kept = fixture.scratch.path + "/kept"
        try FileManager.default.moveItem(atPath: path, toPath: kept)
        #expect(!fixture.attachments.isPresent(saved.digest.sha1))
        check(fixture, saved, bytes, "missing")

        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: kept)
        #expect(!fixture.attachments.isPresent(saved.digest.sha1))
        check(fixture, saved, bytes, "a link to it")
        try FileManager.default.removeItem(atPath: path)

        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        check(fixture, saved, bytes, "a directory")
        try FileManager.default.removeItem(atPath: path)

        #expect(mkfifo(path, 0o600) == 0)
        check(fixture, saved, bytes, "a pipe")
        try FileManager.default.removeItem(atPath: path)

        try FileManager.default.moveItem(atPath: kept, toPath: path)
        #expect(try fixture.open(saved).wholeContent() == bytes)
    }

    @Test("An attachment is damaged because its row is of another kind of store, or says what can't be")
    func wrongRow() throws {
        for isEncrypted in [true, false] {
            let fixture = try AttachmentFixture(isEncrypted: isEncrypted)
            let saved = try fixture.save(content(100))
            for count in [0, 1, 55, 56, 57] where count != saved.header.count {
                expectDamage("a header of \(count) bytes") {
                    let header = Array((saved.header + [UInt8](repeating: 0, count: 57)).prefix(count))
                    _ = try fixture.attachments.open(saved.digest, header: header, subject: subject)
                }
            }
            for count in [0, 99, 101, 1 << 52, Int.max] {
                let digest = ContentDigest(
                    sha1: saved.digest.sha1, sha256: saved.digest.sha256, byteCount: count)
                expectDamage("\(count) bytes") {
                    _ = try fixture.attachments.open(digest, header: saved.header, subject: subject)
                }
            }
            let digest = ContentDigest(
                sha1: saved.digest.sha1, sha256: [UInt8](repeating: 0, count: 32), byteCount: 100)
            let reader = try fixture.attachments.open(digest, header: saved.header, subject: subject)
            expectDamage("another SHA-256") { _ = try reader.wholeContent() }
        }
    }

    @Test(
        "Damage of an attachment is noticed before the last bytes are handed out, and what comes before is right",
        arguments: [true, false])
    func prefix(isEncrypted: Bool) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted)
        let bytes = content(100_000)
        let saved = try fixture.save(bytes)
        try change(fixture.path(of: saved)) { $0[60000] ^= 1 }
        for pieces in [1000, 16384, 50000, 99_999, 100_000, 200_000] {
            let reading = try fixture.open(saved).wholeRead()
            var piece = [UInt8](repeating: 0xAA, count: pieces)
            var count = 0
            var failure: CofferError?
            while failure == nil {
                do throws(CofferError) {
                    let read = try fill(&piece, reading)
                    #expect(count + read < bytes.count)
                    // Without tags, only the end can tell.
                    if isEncrypted { #expect(Array(piece[..<read]) == Array(bytes[count..<count + read])) }
                    count += read
                } catch {
                    failure = error
                }
            }
            #expect(failure == CofferError(.damaged) && failure?.subject == subject)
            #expect(piece.allSatisfy { $0 == 0 }, "nothing is left of what was not verified")
            // An error is not the end: asking again brings it again.
            #expect(throws: CofferError(.damaged)) { try fill(&piece, reading) }
        }
    }

    @Test(
        "An attachment that is changed since it was opened is damaged too, and one that lost its name is read on",
        arguments: [true, false])
    func whileOpen(isEncrypted: Bool) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted)
        let bytes = content(100_000)
        let saved = try fixture.save(bytes)
        let reader = try fixture.open(saved)
        let reading = reader.wholeRead()
        try fixture.attachments.remove([saved.digest.sha1])
        #expect(try reader.wholeContent() == bytes)
        #expect(try reader.bytes(in: 5..<50000) == Array(bytes[5..<50000]))
        var all = [UInt8](repeating: 0, count: bytes.count)
        #expect(try fill(&all, reading) == bytes.count && all == bytes)
        expectDamage("opened anew") { _ = try fixture.open(saved) }

        let second = try fixture.save(bytes)
        let opened = try fixture.open(second)
        let path = try fixture.path(of: second)
        _ = chmod(path, 0o600)
        #expect(truncate(path, 50000) == 0)
        expectDamage("cut while open") { _ = try opened.wholeContent() }
        expectDamage("cut while open") { _ = try opened.bytes(in: 90000..<90001) }
        expectDamage("cut while open") { _ = try opened.bytes(in: 49000..<51000) }
        #expect(try opened.bytes(in: 0..<16384) == Array(bytes[..<16384]))
    }

    @Test("A file that can't be read is not a damaged attachment: that is the system's error, named all the same")
    func unreadable() throws {
        let recording = RecordingFileSystem()
        let fixture = try AttachmentFixture(fileSystem: recording)
        let saved = try fixture.save(content(100_000))
        let reader = try fixture.open(saved)
        recording.failReads(EIO)
        let reads: [() throws -> Void] = [
            { _ = try fixture.open(saved) }, { _ = try reader.wholeContent() }, { _ = try reader.bytes(in: 5..<6) },
        ]
        for read in reads {
            let error = #expect(throws: CofferError(.ioFailed), performing: read)
            #expect(error?.subject == subject && error?.systemErrorNumber == EIO)
        }
        recording.failReads(nil)
        #expect(try reader.wholeContent() == content(100_000))
    }
}
