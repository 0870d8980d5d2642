import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

@Suite("What attachments leave, take and belong to")
struct AttachmentCostTests {
    /// Whether any file below `path` holds `marker`.
    private func holds(_ path: String, _ marker: [UInt8]) throws -> Bool {
        try FileManager.default.subpathsOfDirectory(atPath: path).contains { name in
            let data = try? Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)"))
            return data?.range(of: Data(marker)) != nil
        }
    }

    @Test(
        "Attachments leave no plaintext in any file at any time, unless the store is not encrypted",
        arguments: [true, false])
    func canary(isEncrypted: Bool) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted)
        let canary = Array("THE-CANARY-SINGS-IN-THE-MINE".utf8)
        let bytes = (0..<20).flatMap { content(30000, seed: $0 + 1) + canary }
        var seen: [Bool] = []
        let writer = try fixture.attachments.beginStaging()
        for start in stride(from: 0, to: bytes.count, by: 70000) {
            try writer.write(Array(bytes[start..<min(start + 70000, bytes.count)]))
            seen.append(try holds(fixture.scratch.path, canary))
        }
        let staged = try writer.finish()
        seen.append(try holds(fixture.scratch.path, canary))
        try fixture.attachments.install([staged])
        seen.append(try holds(fixture.scratch.path, canary))
        fixture.attachments.didCommit([staged])
        _ = try fixture.open(staged).wholeContent()
        seen.append(try holds(fixture.scratch.path, canary))
        #expect(seen.suffix(3) == (isEncrypted ? [false, false, false] : [true, true, true]))
        #expect(seen.contains(true) == !isEncrypted)
    }

    @Test(
        "Reading a range takes the chunks that it is in, and opening takes the header and the last one",
        arguments: [true, false])
    func reads(isEncrypted: Bool) throws {
        let recording = RecordingFileSystem()
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted, fileSystem: recording)
        let bytes = content(10_000_000)
        let saved = try fixture.save(bytes)
        let (header, chunk) = isEncrypted ? (56, 16400) : (0, 16384)
        func reads(_ body: () throws -> Void) rethrows -> [Range<Int>] {
            recording.forgetReads()
            try body()
            return recording.reads
        }
        let last = bytes.count / 16384
        let end = header + bytes.count + (isEncrypted ? 16 * (last + 1) : 0)
        var opened: AttachmentReader?
        #expect(
            try reads { opened = try fixture.open(saved) }
                == (isEncrypted ? [0..<56, header + last * chunk..<end] : []))
        let reader = try #require(opened)
        func place(_ chunks: ClosedRange<Int>) -> Range<Int> {
            header + chunks.lowerBound * chunk..<min(end, header + (chunks.upperBound + 1) * chunk)
        }
        for (range, chunks) in [
            (0..<1, 0...0), (16383..<16384, 0...0), (16384..<16385, 1...1), (16383..<16385, 0...1),
            (5_000_000..<5_000_001, 305...305), (9_999_999..<10_000_000, last...last),
        ] {
            #expect(try reads { _ = try reader.bytes(in: range) } == [place(chunks)])
            #expect(try reader.bytes(in: range) == Array(bytes[range]))
        }
        #expect(try reads { _ = try reader.bytes(in: 7..<7) } == [])
        // Long ones in few calls, each byte once.
        for all in [
            try reads { _ = try reader.wholeContent() }, try reads { _ = try read(reader, pieces: 1000) },
            try reads { _ = try reader.bytes(in: 0..<bytes.count) },
        ] {
            #expect(all.count == (last + 1 + 15) / 16)
            #expect(all.first?.lowerBound == header && all.last?.upperBound == end)
            #expect(zip(all, all.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound })
        }
    }

    #if os(Linux)
    @Test("Attachments take little memory, however long they are", arguments: [true, false])
    func memory(isEncrypted: Bool) async throws {
        await #expect(processExitsWith: .success) { [isEncrypted = isEncrypted as Bool] in
            func peakKiB() throws -> Int {
                let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
                let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
                return try #require(Int(line.filter(\.isNumber)))
            }
            let fixture = try AttachmentFixture(isEncrypted: isEncrypted)
            let piece = content(1 << 20)
            _ = try fixture.save(content(1000))
            let before = try peakKiB()
            let writer = try fixture.attachments.beginStaging()
            for _ in 0..<64 { try writer.write(piece) }
            let staged = try writer.finish()
            try fixture.attachments.install([staged])
            fixture.attachments.didCommit([staged])
            let reader = try fixture.open(staged)
            let reading = reader.wholeRead()
            var buffer = [UInt8](repeating: 0, count: 100_000)
            var count = 0
            while case let next = try fill(&buffer, reading), next > 0 { count += next }
            try #require(count == 64 << 20)
            try #require(try reader.bytes(in: 40 << 20..<40 << 20 + 1000) == Array(piece[..<1000]))
            let growth = try peakKiB() - before
            print("64 MiB in and out: \(growth) KiB more at the peak")
            // A buffer for writing, one for reading, and what the allocator rounds up.
            try #require(growth < 4096)
        }
    }
    #endif

    @Test(
        "Attachments belong to the owner of the store, when root saves them",
        .enabled(if: geteuid() == 0, "only root can act as another user"))
    func owner() throws {
        for isEncrypted in [true, false] {
            let scratch = Scratch()
            try makeStore(at: scratch.store, key: isEncrypted ? rawKey() : nil)
            for name in [""] + (try FileManager.default.subpathsOfDirectory(atPath: scratch.store)) {
                #expect(lchown("\(scratch.store)/\(name)", 54321, 54322) == 0)
            }
            let (store, attachments) = try openAttachments(
                at: scratch.store, key: isEncrypted ? rawKey() : nil, otherOwners: .trusted)
            defer { store.close() }
            // Also what is only on its way, or was left there by a kill.
            let writer = try attachments.beginStaging()
            let staged = try (1...9).map { try attachments.stage(content(10, seed: $0)) }
            try attachments.install([staged[0]])
            try attachments.install(Array(staged[1...]))
            for name in [""] + (try FileManager.default.subpathsOfDirectory(atPath: scratch.store)) {
                var status = stat()
                #expect(lstat("\(scratch.store)/\(name)", &status) == 0)
                #expect(status.st_uid == 54321 && status.st_gid == 54322, "\(name)")
            }
            writer.cancel()
        }
    }
}
