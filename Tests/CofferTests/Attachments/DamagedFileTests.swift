import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferModel
@testable import CofferVault

/// Whatever lies in the place of an attachment's file, reading brings what was attached, or an error that names it.
@Suite("An attachment whose file is not its own any more")
struct DamagedFileTests {
    let stores = TestStores()
    let database: Database
    /// Three whole chunks and a part.
    private let content = AttachmentTests.bytes(3 * 16_384 + 100)
    private static let header = 56
    private static let chunk = 16_400

    init() throws { database = try stores.open() }

    private func attach(_ content: Data, to id: String, in database: Database? = nil) throws -> Coffer.Attachment {
        let draft = try (database ?? self.database).document(withID: id).newRevision()
        draft.setAttachment(named: "scan.pdf", contentType: nil, content: content)
        return try #require(try draft.save().attachment(named: "scan.pdf"))
    }

    private func file(of attachment: Coffer.Attachment, in store: String = "db") throws -> URL {
        let sha1 = try #require(SHA1Digest.bytes(of: attachment.digest)).hex
        return try stores.generation(store).appending(path: "attachments/\(sha1).blob")
    }

    /// Each way to read: what it brings must be right, or it must be damage with the attachment's name.
    ///
    /// - Parameter intact: the chunks that may be read in part all the same.
    private func check(_ attachment: Coffer.Attachment, intact: Set<Int> = [], _ what: String) throws {
        func expectDamage(_ way: String, _ read: () throws -> Data?) {
            let error = thrown(read)
            #expect(error?.code == .damaged, "\(what), \(way): \(error?.description ?? "no error")")
            #expect(error?.description.contains("attachment scan.pdf of document") == true, "\(what), \(way)")
        }
        expectDamage("content") { try attachment.content }
        expectDamage("chunks") {
            var all = Data()
            try attachment.chunks?.forEach { all += $0 }
            return all
        }
        expectDamage("stream") { try Self.read(attachment.openContentStream()) }
        for number in 0..<4 {
            let start = number * 16_384
            let end = min(start + 16_384, content.count)
            for range in [start..<end, start..<start + 1, end - 1..<end] {
                if intact.contains(number) {
                    #expect(try attachment.content(in: range) == content.subdata(in: range), "\(what), \(range)")
                } else {
                    expectDamage("\(range)") { try attachment.content(in: range) }
                }
            }
        }
        expectDamage("all as a range") { try attachment.content(in: 0..<content.count) }
    }

    static func read(_ stream: InputStream?) throws -> Data {
        let stream = try #require(stream)
        var all = Data()
        var buffer = [UInt8](repeating: 0, count: 5_000)
        stream.open()
        defer { stream.close() }
        while true {
            let count = stream.read(&buffer, maxLength: buffer.count)
            if count == 0 { return all }
            guard count > 0 else {
                #expect(stream.streamStatus == .error)
                #expect(stream.read(&buffer, maxLength: buffer.count) < 0)
                throw try #require(stream.streamError)
            }
            all += buffer[..<count]
        }
    }

    @Test("An attachment's file with any bit changed, at every border, is damaged; other chunks can be read in part")
    func bits() throws {
        let attachment = try attach(content, to: "invoice")
        let file = try file(of: attachment)
        let whole = try Data(contentsOf: file)
        var offsets: Set = [0, whole.count - 17, whole.count - 16, whole.count - 1]
        for number in 0...3 {
            let start = Self.header + number * Self.chunk
            offsets.formUnion([start - 1, start, start + 1])
            if number > 0 { offsets.formUnion([start - 17, start - 16, start - 15]) }
        }
        offsets.formUnion([23, 24])
        for offset in offsets.sorted() {
            for bit in [0, 7] {
                var changed = whole
                changed[offset] ^= 1 << UInt8(bit)
                try changed.write(to: file)
                let damaged = offset < Self.header ? nil : (offset - Self.header) / Self.chunk
                // The header and the last chunk are checked by every reading.
                let intact: Set<Int> = damaged == nil || damaged == 3 ? [] : Set(0..<4).subtracting([damaged ?? 0])
                try check(attachment, intact: intact, "bit \(bit) of byte \(offset)")
            }
        }
        try whole.write(to: file)
        #expect(try attachment.content == content)
    }

    @Test(
        "An attachment's file with changed last bytes or header is damaged for every reading, whatever its length",
        arguments: [0, 1, 16_383, 16_384, 16_385, 32_767, 32_768, 32_769, 262_144, 1_048_576])
    func ends(count: Int) throws {
        let content = AttachmentTests.bytes(count)
        let attachment = try attach(content, to: "invoice")
        let file = try file(of: attachment)
        let whole = try Data(contentsOf: file)
        for offset in Set([0, 55, 56, whole.count - 17, whole.count - 16, whole.count - 1]) {
            var changed = whole
            changed[offset] ^= 0x10
            try changed.write(to: file)
            for read in [
                { try attachment.content }, { try Self.read(attachment.openContentStream()) },
                { try attachment.content(in: 0..<count) },
                {
                    try attachment.chunks?.forEach { _ in }
                    return nil
                },
            ] as [() throws -> Data?] {
                #expect(thrown(read)?.code == .damaged, "byte \(offset) of \(whole.count)")
            }
        }
        try whole.write(to: file)
        #expect(try attachment.content == content)
    }

    @Test("An attachment's file is damaged because chunks were cut off, dropped, swapped, doubled or appended")
    func chunks() throws {
        let attachment = try attach(content, to: "invoice")
        let file = try file(of: attachment)
        let whole = try Data(contentsOf: file)
        let header = whole.prefix(Self.header)
        let parts = (0..<4).map { Data(whole.dropFirst(Self.header + $0 * Self.chunk).prefix(Self.chunk)) }
        func put(_ chunks: [Data], _ what: String, intact: Set<Int> = []) throws {
            try (header + chunks.reduce(Data(), +)).write(to: file)
            try check(attachment, intact: intact, what)
        }
        for length in [
            0, 1, 55, 56, 57, 72, 56 + 16_399, 56 + 16_400, 56 + 2 * 16_400, whole.count - 17, whole.count - 16,
            whole.count - 1,
        ] {
            try whole.prefix(length).write(to: file)
            try check(attachment, "cut to \(length) bytes")
        }
        try put([parts[0], parts[2], parts[3]], "one dropped")
        try put([parts[0], parts[2], parts[1], parts[3]], "two swapped", intact: [0, 3])
        try put([parts[0], parts[0], parts[2], parts[3]], "one doubled in another's place", intact: [0, 2, 3])
        try put(parts + [parts[3]], "one appended")
        try put([parts[0], parts[1], parts[2]] + [parts[2], parts[3]], "one doubled")
        try (whole + [0]).write(to: file)
        try check(attachment, "one byte more")
        try whole.write(to: file)
        #expect(try attachment.content == content)
    }

    @Test("An attachment's file is damaged because another encryption is in its place, also one of the same content")
    func others() throws {
        let attachment = try attach(content, to: "invoice")
        let place = try file(of: attachment)
        let whole = try Data(contentsOf: place)
        let otherContent = AttachmentTests.bytes(content.count, seed: 9)
        let other = try Data(contentsOf: file(of: attach(otherContent, to: "other")))
        try other.write(to: place)
        try check(attachment, "another attachment's, of the same length")
        try (whole.prefix(56) + other.dropFirst(56)).write(to: place)
        try check(attachment, "another's under its header")

        for (name, key) in [("same-key", TestStores.key), ("other-key", testKey(9))] {
            let elsewhere = try stores.open(name, key: key)
            let twin = try attach(content, to: "invoice", in: elsewhere)
            try Data(contentsOf: file(of: twin, in: name)).write(to: place)
            try check(attachment, "the same content's in another store")
        }

        // An older encryption of the same content, under the same key, in the same store.
        try whole.write(to: place)
        try #require(try database["invoice"]?.currentRevision).deleteDocument()
        try database.compact()
        #expect(!FileManager.default.fileExists(atPath: place.path))
        let again = try attach(content, to: "again")
        #expect(try file(of: again) == place)
        #expect(try Data(contentsOf: place) != whole)
        try whole.write(to: place)
        try check(again, "an older encryption of the same content")
    }

    @Test(
        "An attachment whose file is missing, a directory, a link, a pipe or empty is damaged, and not available")
    func kinds() throws {
        let attachment = try attach(content, to: "invoice")
        let file = try file(of: attachment)
        let whole = try Data(contentsOf: file)
        let files = FileManager.default
        let aside = stores.directory.appending(path: "aside")
        try whole.write(to: aside)
        func put(_ what: String, isAvailable: Bool = false, _ make: () throws -> Void) throws {
            try files.removeItem(at: file)
            try make()
            #expect(attachment.contentAvailable == isAvailable, "\(what)")
            try check(attachment, what)
            if !files.fileExists(atPath: file.path) { try Data().write(to: file) }
        }
        try put("missing") {}
        try put("a directory") { try files.createDirectory(at: file, withIntermediateDirectories: false) }
        try put("a link to the right bytes") { try files.createSymbolicLink(at: file, withDestinationURL: aside) }
        try put("a pipe") { #expect(mkfifo(file.path, 0o600) == 0) }
        try put("empty", isAvailable: true) { try Data().write(to: file) }
        // The document is none the worse, and saving the content again brings it back.
        #expect(try database["invoice"]?.properties == [:])
        _ = try attach(content, to: "again")
        #expect(try attachment.content == content)
    }

    @Test("A changed attachment is noticed without encryption, too, wherever all of it is read")
    func unencrypted() throws {
        let plain = try stores.open("plain", key: nil)
        let attachment = try attach(content, to: "invoice", in: plain)
        let file = try file(of: attachment, in: "plain")
        let whole = try Data(contentsOf: file)
        #expect(try attachment.contentURL.map { try Data(contentsOf: $0) } == content)
        for offset in [0, 16_384, whole.count - 1] {
            var changed = whole
            changed[offset] ^= 1
            try FileManager.default.removeItem(at: file)
            try changed.write(to: file)
            for read in [
                { try attachment.content }, { try Self.read(attachment.openContentStream()) },
                {
                    try attachment.chunks?.forEach { _ in }
                    return nil
                },
            ] as [() throws -> Data?] {
                #expect(thrown(read)?.code == .damaged)
            }
        }
        try whole.dropLast().write(to: file)
        #expect(thrown { try attachment.content(in: 0..<1) }?.code == .damaged)
    }
}
