import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

@Suite("A list of attachments that are being installed")
struct InstallIntentListTests {
    private static func spelled(_ count: Int, _ names: Manifest.AttachmentNames = .sha1) -> [String] {
        (0..<count).map { number in
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: (names == .sha1 ? 40 : 64) - digits.count) + digits + ".blob"
        }
    }

    @Test("An install intent has the bytes that the format says")
    func bytes() throws {
        let name = "00112233445566778899aabbccddeeff00112233.blob"
        let bytes = try InstallIntentList.bytes(of: [name], in: .sha1)
        let head: [UInt8] = [
            0x89, 0x43, 0x46, 0x4C, 0x0D, 0x0A, 0x1A, 0x0A, 0, 1, 0, 20, 0, 0, 0, 1, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55,
            0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF, 0x00, 0x11, 0x22, 0x33,
        ]
        #expect(try bytes == head + Digest.sha256(of: head))
    }

    @Test(
        "An install intent gives back its names, up to the most that it holds",
        arguments: [Manifest.AttachmentNames.sha1, .keyed],
        [1, 2, 8, InstallIntentList.nameLimit])
    func roundTrip(kind: Manifest.AttachmentNames, count: Int) throws {
        let names = Self.spelled(count, kind)
        let bytes = try InstallIntentList.bytes(of: names, in: kind)
        #expect(bytes.count == 48 + count * (kind == .sha1 ? 20 : 32))
        #expect(try InstallIntentList.attachments(in: bytes, kind) == names)
        #expect(try InstallIntentList.attachments(in: bytes, kind == .sha1 ? .keyed : .sha1) == nil)
    }

    @Test("An install intent is refused when it is cut anywhere, goes on, or has one bit changed")
    func damaged() throws {
        let bytes = try InstallIntentList.bytes(of: Self.spelled(3), in: .sha1)
        for count in 0..<bytes.count {
            #expect(try InstallIntentList.attachments(in: Array(bytes[..<count]), .sha1) == nil)
        }
        for more in [[0], [UInt8](repeating: 0, count: 20), bytes] {
            #expect(try InstallIntentList.attachments(in: bytes + more, .sha1) == nil)
        }
        for bit in 0..<bytes.count * 8 {
            var changed = bytes
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(try InstallIntentList.attachments(in: changed, .sha1) == nil, "bit \(bit)")
        }
    }

    /// Bytes that say they are a list, with `digest` as all that they name, whatever else is wrong with them.
    private static func forged(magic: UInt8 = 0x89, version: UInt8 = 1, length: UInt8 = 20, count: UInt32) throws
        -> [UInt8]
    {
        var bytes: [UInt8] = [magic, 0x43, 0x46, 0x4C, 0x0D, 0x0A, 0x1A, 0x0A, 0, version, 0, length]
        bytes += (0..<4).reversed().map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
        bytes += [UInt8](repeating: 7, count: 20)
        return try bytes + Digest.sha256(of: bytes)
    }

    @Test("An install intent is refused with another head, although its checksum is right")
    func otherHead() throws {
        #expect(try InstallIntentList.attachments(in: Self.forged(count: 1), .sha1)?.count == 1)
        #expect(try InstallIntentList.attachments(in: Self.forged(magic: 0x88, count: 1), .sha1) == nil)
        #expect(try InstallIntentList.attachments(in: Self.forged(version: 2, count: 1), .sha1) == nil)
        #expect(try InstallIntentList.attachments(in: Self.forged(length: 32, count: 1), .sha1) == nil)
        for count: UInt32 in [0, 2, .max] {
            #expect(try InstallIntentList.attachments(in: Self.forged(count: count), .sha1) == nil)
        }
    }

    // MARK: In a store

    /// A store as a kill within a transaction of `count` leaves it, and what is in its `attachments/`.
    private func interrupted(
        _ count: Int, names: Manifest.AttachmentNames = .sha1
    ) throws -> (scratch: Scratch, generation: String, files: [String]) {
        let scratch = Scratch.inMemory
        let fixture = try AttachmentFixture(names: names, in: scratch)
        try fixture.attachments.install((1...count).map { try fixture.stage(content(10, seed: UInt64($0))) })
        return (scratch, fixture.generation, fixture.files)
    }

    @Test(
        "An install intent lets recovery remove those that have no row and keep the others",
        arguments: [Manifest.AttachmentNames.sha1, .keyed])
    func recovers(kind: Manifest.AttachmentNames) throws {
        let (scratch, generation, files) = try interrupted(9, names: kind)
        let incoming = names(in: generation + "/incoming")
        #expect(files.count == 9 && incoming.count == 1)
        let status = try FileManager.default.attributesOfItem(atPath: "\(generation)/incoming/\(incoming[0])")
        #expect(status[.posixPermissions] as? Int == 0o600)
        let saved = Set(files.prefix(4))
        try recover(scratch.store) { saved.contains($0) }
        #expect(Set(names(in: generation + "/attachments")) == saved)
        #expect(try isTidy(scratch.store))
    }

    @Test("An install intent of more than it holds is as many as it takes")
    func several() throws {
        let count = InstallIntentList.nameLimit + 1
        let (scratch, generation, files) = try interrupted(count)
        let lists = names(in: generation + "/incoming")
        #expect(files.count == count && lists.count == 2 && lists.allSatisfy { $0.hasSuffix(".list") })
        try recover(scratch.store) { _ in false }
        #expect(names(in: generation + "/attachments").isEmpty)
        #expect(try isTidy(scratch.store))
    }

    private enum Fake: String, CaseIterable {
        case empty, half, changed, zeros, otherKind, link, danglingLink, directory, fifo, huge, otherName
    }

    @Test(
        "An install intent that isn't a whole file of its kind announces nothing, and goes",
        arguments: Fake.allCases)
    private func fake(kind: Fake) throws {
        let (scratch, generation, files) = try interrupted(9)
        let name = try #require(names(in: generation + "/incoming").first)
        let path = "\(generation)/incoming/\(name)"
        let outside = scratch.path + "/outside"
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        try FileManager.default.moveItem(atPath: path, toPath: outside)
        func put(_ bytes: Data) throws { try bytes.write(to: URL(fileURLWithPath: path)) }
        switch kind {
        case .empty: try put(Data())
        case .half: try put(bytes.prefix(bytes.count / 2))
        case .changed: try put(Data(bytes.dropLast() + [bytes[bytes.count - 1] ^ 1]))
        case .zeros: try put(Data(count: bytes.count))
        case .otherKind: try put(Data(try InstallIntentList.bytes(of: Self.spelled(9, .keyed), in: .keyed)))
        case .link: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: outside)
        case .danglingLink: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "nowhere")
        case .directory:
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            try FileManager.default.copyItem(atPath: outside, toPath: path + "/" + name)
        case .fifo: #expect(mkfifo(path, 0o600) == 0)
        case .huge:
            // As long as a real one would never be: not worth a look.
            try put(bytes)
            #expect(truncate(path, 1 << 40) == 0)
        case .otherName: try bytes.write(to: URL(fileURLWithPath: "\(generation)/incoming/a\(name)"))
        }
        let recording = RecordingFileSystem()
        try recover(scratch.store, fileSystem: recording) { _ in
            Issue.record("it asked")
            return false
        }
        #expect(names(in: generation + "/attachments") == files)
        #expect(recording.reads.allSatisfy { $0.count <= 200_000 })
        #expect(try isTidy(scratch.store))
        #expect(FileManager.default.fileExists(atPath: outside))
    }

    @Test("An install intent that can't be read stops recovery, which removes nothing then")
    func unreadable() throws {
        let (scratch, generation, files) = try interrupted(9)
        let recording = RecordingFileSystem()
        #expect(throws: CofferError(.ioFailed)) {
            let store = try LockedStore.open(path: scratch.store, access: .readWrite, fileSystem: recording)
            defer { store.close() }
            let unlocked = try store.readManifest().unlock(with: rawKey())
            recording.failReads(EIO)
            _ = try store.recover(unlocked, attachmentHasRow: { _ in false }) { _ in }
        }
        #expect(names(in: generation + "/attachments") == files)
        #expect(names(in: generation + "/incoming").count == 1)
    }
}
