import CofferSealing
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CofferVault

/// Around each boundary of the format: chunks of 16384 bytes, of which 16 are written and read at a time.
private let sizes = [
    0, 1, 2, 100, 16383, 16384, 16385, 32767, 32768, 32769, 262_143, 262_144, 262_145, 1_000_000, 3_333_333,
]

@Suite("An attachment's content")
struct AttachmentRoundTripTests {
    @Test(
        "An attachment's content is read as it was written, whole, in pieces and by range", arguments: [true, false],
        sizes)
    func roundTrip(isEncrypted: Bool, size: Int) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted)
        let bytes = content(size)
        let saved = try fixture.save(bytes)
        #expect(saved.digest.byteCount == size)
        #expect(try saved.digest.sha1 == Digest.sha1(of: bytes))
        #expect(try saved.digest.sha256 == Digest.sha256(of: bytes))
        #expect(saved.isEncrypted == isEncrypted && saved.header.count == (isEncrypted ? 56 : 0))

        let reader = try fixture.open(saved)
        #expect(reader.byteCount == size)
        for check in [ContentCheck.digest, .tags] {
            #expect(try reader.wholeContent(checking: check) == bytes)
            for pieces in [1000, 16384, 16385, 100_000, 4_000_000] {
                #expect(try read(reader, pieces: pieces, checking: check) == bytes, "in pieces of \(pieces)")
            }
        }
        for bound in [0, 1, 16383, 16384, 16385, 32768, size / 2, size - 1, size] where (0...size).contains(bound) {
            #expect(try reader.bytes(in: 0..<bound) == Array(bytes[..<bound]))
            #expect(try reader.bytes(in: bound..<size) == Array(bytes[bound...]))
            let end = min(size, bound + 1)
            #expect(try reader.bytes(in: bound..<end) == Array(bytes[bound..<end]))
        }
    }

    @Test("An attachment's content is the same where two threads read it, on many at a time and of any length")
    func halves() throws {
        let fixture = try AttachmentFixture()
        let attachments = fixture.attachments
        let failures = Atomic(0)
        let sizes = [0, 1, 16383, 16384, 16385, 32768, 40_000, 262_144, 1_000_000, 2_000_000]
        let contents = try sizes.map { (content($0), try fixture.save(content($0))) }
        DispatchQueue.concurrentPerform(iterations: 4 * sizes.count) { number in
            let (bytes, saved) = contents[number % sizes.count]
            var output = [UInt8](repeating: 0xAA, count: bytes.count)
            var span = output.mutableSpan
            do throws(CofferError) {
                let reader = try attachments.open(
                    saved.digest, header: saved.header, subject: subject, onlyForReadingWhole: true, bytesReadByTwo: 0)
                try span.withUnsafeMutableBytes { (output) throws(CofferError) in
                    try reader.readWhole(into: output, checking: .tags)
                }
            } catch {
                failures.add(1, ordering: .relaxed)
            }
            if output != bytes { failures.add(1, ordering: .relaxed) }
        }
        #expect(failures.load(ordering: .relaxed) == 0)

        for count in [AttachmentReader.bytesReadByTwo - 1, AttachmentReader.bytesReadByTwo] {
            let bytes = content(count)
            let saved = try fixture.save(bytes)
            let reader = try attachments.open(
                saved.digest, header: saved.header, subject: subject, onlyForReadingWhole: true)
            #expect(reader.canBeReadByTwo == (count >= AttachmentReader.bytesReadByTwo))
            #expect(try reader.wholeContent(checking: .tags) == bytes)
        }
    }

    @Test("An attachment's content may come in pieces of any size, and be read in such", arguments: [true, false])
    func pieces(isEncrypted: Bool) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted)
        for size in [0, 1, 16384, 16385, 40000] {
            let bytes = content(size)
            for pieces in [1, 7, 1000, 16383, 16384, 16385, 40000] {
                let staged = try fixture.stage(bytes, pieces: pieces)
                #expect(try staged.open().wholeContent() == bytes, "\(size) in pieces of \(pieces)")
                #expect(try read(staged.open(), pieces: pieces) == bytes, "\(size) in pieces of \(pieces)")
            }
        }
    }

    @Test(
        "An attachment's content may come in long pieces, digested beside the rest, and in short ones, on many threads",
        arguments: [true, false])
    func longPieces(isEncrypted: Bool) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted)
        let attachments = fixture.attachments
        let apart = 1 << 17
        let failures = Atomic(0)
        DispatchQueue.concurrentPerform(iterations: 12) { number in
            let lengths = [3 * apart, 5, apart - 1, apart, 16_384, apart + 1, 1_000_000, 1, 2 * apart + number]
            let bytes = content(lengths.reduce(0, +), seed: UInt64(number + 1))
            do {
                let writer = try attachments.beginStaging()
                var rest = bytes[...]
                for length in lengths {
                    try writer.write(Array(rest.prefix(length)))
                    rest = rest.dropFirst(length)
                }
                let staged = try writer.finish()
                let digests = try [Digest.sha1(of: bytes), Digest.sha256(of: bytes)]
                guard [staged.digest.sha1, staged.digest.sha256] == digests,
                    try staged.open().wholeContent() == bytes
                else { return _ = failures.add(1, ordering: .relaxed) }
            } catch {
                failures.add(1, ordering: .relaxed)
            }
        }
        #expect(failures.load(ordering: .relaxed) == 0)
    }

    @Test("An attachment's content may come from an array, a span or a buffer, in empty pieces too")
    func overloads() throws {
        let fixture = try AttachmentFixture()
        let writer = try fixture.attachments.beginStaging()
        let bytes = content(20000)
        try writer.write([])
        try writer.write(Array(bytes[..<5]))
        try bytes.withUnsafeBytes { try writer.write(UnsafeRawBufferPointer(rebasing: $0[5..<17000])) }
        try writer.write([])
        try writer.write(Array(bytes[17000...]).span.bytes)
        #expect(try writer.finish().open().wholeContent() == bytes)
    }

    @Test("An attachment's content is read at every range around the ends of chunks", arguments: [true, false])
    func ranges(isEncrypted: Bool) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted)
        let bytes = content(2 * 16384 + 100)
        let reader = try fixture.open(fixture.save(bytes))
        let bounds = [0, 1, 2, 16382, 16383, 16384, 16385, 32767, 32768, 32769, bytes.count - 1, bytes.count]
        for lower in bounds {
            for upper in bounds where upper >= lower {
                #expect(try reader.bytes(in: lower..<upper) == Array(bytes[lower..<upper]), "\(lower)..<\(upper)")
            }
        }
    }

    @Test("An attachment's content is read by many threads at once")
    func threads() throws {
        let fixture = try AttachmentFixture()
        let bytes = content(200_000)
        let reader = try fixture.open(fixture.save(bytes))
        DispatchQueue.concurrentPerform(iterations: 200) { index in
            let range = index * 700..<index * 900 + 5000
            #expect((try? reader.bytes(in: range)) == Array(bytes[range]))
            if index % 20 == 0 { #expect((try? reader.wholeContent()) == bytes) }
        }
    }

    @Test("An attachment's content of one SHA-1 and another is told apart by SHA-256 and length")
    func collision() throws {
        // Nobody can make these on purpose with a hash as it is: 2^80 tries, or a published pair.
        let fixture = try AttachmentFixture(adjustDigest: { digest in
            ContentDigest(
                sha1: [UInt8](repeating: 7, count: 20), sha256: digest.sha256, byteCount: digest.byteCount)
        })
        let (one, other) = (content(100, seed: 1), content(100, seed: 2))
        let first = try fixture.save(one)
        let second = try fixture.stage(other)
        #expect(first.digest.sha1 == second.digest.sha1)
        #expect(first.digest != second.digest)
        #expect(fixture.attachments.isPresent(second.digest.sha1))
        #expect(try fixture.open(first).wholeContent() == one)
        #expect(try second.open().wholeContent() == other)
        #expect(throws: CofferError(.damaged)) { try fixture.open(second) }
    }

    @Test("An attachment's content is in a file named by its SHA-1, which says nothing about it where names are keyed")
    func names() throws {
        let bytes = Array("This is the body of attach1".utf8)
        let plainName = "80e1d43819883280c2accb86c9a2d6cdfd614131.blob"
        for (isEncrypted, length) in [(true, 56 + 27 + 16), (false, 27)] {
            let fixture = try AttachmentFixture(isEncrypted: isEncrypted)
            let saved = try fixture.save(bytes)
            #expect(fixture.files == [plainName])
            #expect(try fixture.attachments.allNames() == [plainName])
            #expect(fixture.attachments.naming.sha1(of: plainName) == saved.digest.sha1)
            #expect(try Data(contentsOf: URL(fileURLWithPath: fixture.path(of: saved))).count == length)
        }
        let keyed = try AttachmentFixture(names: .keyed)
        let saved = try keyed.save(bytes)
        let key = try #require(try keyed.manifest.key(for: .names))
        let name = try key.authenticationCode(for: saved.digest.sha1).hex + ".blob"
        #expect(keyed.files == [name])
        #expect(try keyed.attachments.allNames() == [name])
        #expect(keyed.attachments.naming.sha1(of: name) == nil)
        #expect(keyed.attachments.naming.sha1(of: plainName) == nil)
        #expect(try keyed.open(saved).wholeContent() == bytes)
        #expect(keyed.attachments.isPresent(saved.digest.sha1))
    }

    @Test("An attachment's content that is not encrypted has a path, to a file that can only be read")
    func path() throws {
        let fixture = try AttachmentFixture(isEncrypted: false)
        let saved = try fixture.save(content(1000))
        let path = fixture.attachments.path(of: saved.digest.sha1)
        #expect(try path == fixture.path(of: saved))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(content(1000)))
        #expect(try permissions(path) == 0o400)
        let encrypted = try AttachmentFixture()
        #expect(try permissions(encrypted.path(of: encrypted.save(content(10)))) == 0o600)
    }

    @Test("An attachment's content is present or not by its name alone")
    func presence() throws {
        for names in [Manifest.AttachmentNames.sha1, .keyed] {
            let fixture = try AttachmentFixture(names: names)
            let staged = try fixture.stage(content(10))
            #expect(!fixture.attachments.isPresent(staged.digest.sha1))
            try fixture.attachments.install([staged])
            fixture.attachments.didCommit([staged])
            #expect(fixture.attachments.isPresent(staged.digest.sha1))
            // Neither opened nor read.
            try Data().write(to: URL(fileURLWithPath: fixture.path(of: staged)))
            #expect(fixture.attachments.isPresent(staged.digest.sha1))
            try FileManager.default.removeItem(atPath: fixture.path(of: staged))
            #expect(!fixture.attachments.isPresent(staged.digest.sha1))
            try FileManager.default.createDirectory(
                atPath: fixture.path(of: staged), withIntermediateDirectories: false)
            #expect(!fixture.attachments.isPresent(staged.digest.sha1))
        }
    }

    @Test(
        "Attachments' contents are listed under well-formed names only",
        arguments: [Manifest.AttachmentNames.sha1, .keyed])
    func listing(names: Manifest.AttachmentNames) throws {
        let fixture = try AttachmentFixture(names: names)
        let saved = try fixture.save(content(10))
        let name = try fixture.attachments.naming.name(of: saved.digest.sha1)
        let digits = name.dropLast(5)
        let others = [
            "notes.txt", "_encryption", String(digits), "\(digits.uppercased()).blob", "\(digits)a.blob", "\(name).1",
            "\(digits.dropLast()).blob", "\(digits.dropLast())g.blob", "\(digits).BLOB", ".blob",
            "\(digits.dropLast(2))é.blob",
            names == .sha1 ? String(repeating: "a", count: 64) + ".blob" : String(repeating: "a", count: 40) + ".blob",
        ]
        for other in others { try Data().write(to: URL(fileURLWithPath: "\(fixture.generation)/attachments/\(other)")) }
        #expect(try fixture.attachments.allNames() == [name])
        for other in others { #expect(fixture.attachments.naming.sha1(of: other) == nil) }
    }
}

func permissions(_ path: String) throws -> Int {
    try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
}
