import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

@Suite("Installing attachments")
struct AttachmentInstallTests {
    private func stage(_ count: Int, in fixture: AttachmentFixture) throws -> [StagedAttachment] {
        try (0..<count).map { try fixture.stage(content(100, seed: UInt64($0 + 1))) }
    }

    /// The steps that `body` takes, with what is random in the names left out.
    private func steps(_ recording: RecordingFileSystem, _ body: () throws -> Void) rethrows -> [String] {
        let before = recording.stepCount
        try body()
        return recording.stepNames[before...].map {
            $0.replacing(/[0-9a-f]{40}\.blob/, with: "NAME").replacing(/[0-9a-f]{16}/, with: "RANDOM")
        }
    }

    @Test("Installing attachments takes a few steps, each durable before the next relies on it")
    func steps() throws {
        let recording = RecordingFileSystem()
        let fixture = try AttachmentFixture(fileSystem: recording)
        let (first, second) = (content(10, seed: 1), content(10, seed: 2))
        var staged: [StagedAttachment] = []
        #expect(
            try steps(recording) { staged = [try fixture.stage(first), try fixture.stage(second)] } == [
                "create RANDOM", "write 82 bytes", "create RANDOM", "write 82 bytes",
            ])
        #expect(
            try steps(recording) { try fixture.attachments.install(staged) } == [
                "create NAME.RANDOM", "create NAME.RANDOM", "fsync directory incoming", "rename RANDOM",
                "rename RANDOM", "fsync file RANDOM", "fsync file RANDOM", "fsync directory attachments",
            ])
        #expect(
            steps(recording) { fixture.attachments.didCommit(staged) } == [
                "unlink NAME.RANDOM", "unlink NAME.RANDOM",
            ])
        #expect(fixture.files.count == 2 && fixture.incoming.isEmpty)
        #expect(
            try steps(recording) { try fixture.attachments.remove(staged.map(\.digest.sha1)) } == [
                "unlink NAME", "unlink NAME", "fsync directory attachments",
            ])
        #expect(fixture.files.isEmpty)
    }

    @Test("Installing many attachments takes one sync for all, where that reports failures, else one for each")
    func many() throws {
        for reports in [true, false] {
            let recording = RecordingFileSystem(reportsFailedWrites: reports)
            let fixture = try AttachmentFixture(fileSystem: recording)
            let staged = try stage(100, in: fixture)
            let all = try steps(recording) { try fixture.attachments.install(staged) }
            #expect(all.filter { $0 == "syncfs" }.count == (reports ? 1 : 0))
            #expect(
                all[..<4] == [
                    "create RANDOM.list", "write 2048 bytes", "fsync file RANDOM.list", "fsync directory incoming",
                ])
            #expect(all[4..<104].allSatisfy { $0 == "rename RANDOM" })
            #expect(all.filter { $0.hasPrefix("fsync file") }.count == (reports ? 1 : 101))
            #expect(all.count == 105 + (reports ? 1 : 100))
            #expect(all.last == "fsync directory attachments")
            #expect(steps(recording) { fixture.attachments.didCommit(staged) } == ["unlink RANDOM.list"])
            #expect(fixture.files.count == 100 && fixture.incoming.isEmpty)
            for (index, attachment) in staged.enumerated() {
                #expect(try fixture.open(attachment).wholeContent() == content(100, seed: UInt64(index + 1)))
            }
        }
    }

    @Test("Installing attachments of nothing does nothing")
    func none() throws {
        let recording = RecordingFileSystem()
        let fixture = try AttachmentFixture(fileSystem: recording)
        #expect(try steps(recording) { try fixture.attachments.install([]) }.isEmpty)
        #expect(try steps(recording) { try fixture.attachments.remove([]) }.isEmpty)
    }

    @Test("Installing attachments keeps no more than a few files open, however many are staged")
    func openFiles() async throws {
        await #expect(processExitsWith: .success) {
            // What a process may have open on Linux, unless somebody raised it.
            var limit = rlimit(rlim_cur: 256, rlim_max: 256)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            let fixture = try AttachmentFixture()
            let staged = try (0..<1000).map { try fixture.stage(content(10, seed: UInt64($0 + 1))) }
            try fixture.attachments.install(Array(staged[900...]))
            fixture.attachments.didCommit(Array(staged[900...]))
            try fixture.attachments.install(Array(staged[..<900]))
            fixture.attachments.didCommit(Array(staged[..<900]))
            try #require(fixture.files.count == 1000)
        }
    }

    @Test("Installing that is rolled back leaves no attachments, and can be tried again", arguments: [true, false])
    func rollBack(isEncrypted: Bool) throws {
        let recording = RecordingFileSystem()
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted, fileSystem: recording)
        let staged = try stage(3, in: fixture)
        for _ in 0..<3 {
            try fixture.attachments.install(staged)
            #expect(fixture.files.count == 3)
            let all = steps(recording) { fixture.attachments.didRollBack(staged) }
            #expect(
                all == Array(repeating: "rename NAME", count: 3) + ["fsync directory attachments"]
                    + Array(repeating: "unlink NAME.RANDOM", count: 3))
            #expect(fixture.files.isEmpty && fixture.incoming.count == 3)
            for attachment in staged { _ = try attachment.open().wholeContent() }
        }
        // Rolled back already, or never installed.
        #expect(steps(recording) { fixture.attachments.didRollBack(staged) }.isEmpty)
        #expect(steps(recording) { fixture.attachments.didCommit(staged) }.isEmpty)
        try fixture.attachments.install(staged)
        fixture.attachments.didCommit(staged)
        #expect(steps(recording) { fixture.attachments.didRollBack(staged) }.isEmpty)
        #expect(fixture.files.count == 3 && fixture.incoming.isEmpty)
    }

    @Test("Installing attachments takes back only what it put there")
    func rollBackOthers() throws {
        let fixture = try AttachmentFixture()
        let saved = try fixture.save(content(10, seed: 9))
        let staged = try stage(2, in: fixture)
        try fixture.attachments.install([staged[0]])
        fixture.attachments.didRollBack(staged)
        #expect(fixture.attachments.isPresent(saved.digest.sha1))
        #expect(fixture.files.count == 1)
    }

    @Test("Installing attachments replaces a file that has no row, whatever is in it")
    func replacing() throws {
        let fixture = try AttachmentFixture()
        for kind in ["file", "link"] {
            let staged = try fixture.stage(content(1000))
            let path = try fixture.path(of: staged)
            switch kind {
            case "file": try Data("not trusted".utf8).write(to: URL(fileURLWithPath: path))
            default:
                try FileManager.default.createSymbolicLink(
                    atPath: path, withDestinationPath: fixture.scratch.store + "/MANIFEST")
            }
            try fixture.attachments.install([staged])
            fixture.attachments.didCommit([staged])
            #expect(try fixture.open(staged).wholeContent() == content(1000))
            try FileManager.default.removeItem(atPath: path)
        }
        #expect(FileManager.default.fileExists(atPath: fixture.scratch.store + "/MANIFEST"))
    }

    @Test(
        "Installing attachments is not needed to read what is staged, which goes on being read afterwards",
        arguments: [true, false])
    func reading(isEncrypted: Bool) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted)
        let staged = try fixture.stage(content(20000))
        let before = try staged.open()
        #expect(try before.wholeContent() == content(20000))
        try fixture.attachments.install([staged])
        #expect(try staged.open().wholeContent() == content(20000))
        fixture.attachments.didCommit([staged])
        #expect(try staged.open().wholeContent() == content(20000))
        #expect(try before.wholeContent() == content(20000))
        try fixture.attachments.remove([staged.digest.sha1])
        #expect(try before.wholeContent() == content(20000))
        let error = #expect(throws: CofferError(.damaged)) { try staged.open(subject: subject) }
        #expect(error?.subject == subject)
    }

    @Test("Staged attachments that nobody holds are not installed: their files go with them")
    func abandoned() throws {
        let fixture = try AttachmentFixture()
        do {
            var staged = try stage(3, in: fixture)
            #expect(fixture.incoming.count == 3)
            staged.removeLast()
            #expect(fixture.incoming.count == 2)
            try fixture.attachments.install(staged)
            fixture.attachments.didRollBack(staged)
            #expect(fixture.incoming.count == 2)
        }
        #expect(fixture.incoming.isEmpty && fixture.files.isEmpty)
        // Installed, and whether there is a row is open: only the next open can know.
        do { try fixture.attachments.install(stage(2, in: fixture)) }
        #expect(fixture.incoming.count == 2 && fixture.files.count == 2)
    }

    @Test("Installing attachments follows writing: what is cancelled, dropped or fails leaves no file")
    func unfinished() throws {
        let fixture = try AttachmentFixture()
        let writer = try fixture.attachments.beginStaging()
        try writer.write(content(100_000))
        #expect(fixture.incoming.count == 1)
        writer.cancel()
        writer.cancel()
        #expect(fixture.incoming.isEmpty)
        #expect(throws: CofferError(.cancelled)) { try writer.write([1]) }
        #expect(throws: CofferError(.cancelled)) { try writer.finish() }
        do {
            let dropped = try fixture.attachments.beginStaging()
            try dropped.write(content(100))
            #expect(fixture.incoming.count == 1)
        }
        #expect(fixture.incoming.isEmpty)
        let finished = try fixture.attachments.beginStaging()
        let staged = try finished.finish()
        finished.cancel()
        #expect(try staged.open().wholeContent() == [])
    }

    @Test(
        "Installing attachments after a sync that failed is refused, since nothing is certain any more",
        arguments: [1, 2, 10])
    func failedSync(count: Int) throws {
        let scratch = Scratch()
        try makeStore(at: scratch.store)
        let isSync = { (step: String) in step.hasPrefix("fsync") || step == "syncfs" }
        func attempt(_ fault: Fault?) throws -> [String] {
            let recording = RecordingFileSystem(fault)
            let (store, attachments) = try openAttachments(at: scratch.store, fileSystem: recording)
            defer { store.close() }
            let staged = try (0..<count).map { try attachments.stage(content(10, seed: UInt64($0 + 1))) }
            guard fault != nil else {
                try attachments.install(staged)
                attachments.didRollBack(staged)
                return recording.stepNames
            }
            let directory = try attachmentsPath(ofStoreAt: scratch.store)
            #expect(throws: CofferError(.ioFailed)) { try attachments.install(staged) }
            #expect(names(in: directory).isEmpty)
            for _ in 0..<2 {
                #expect(throws: CofferError(.reopenRequired)) { try attachments.install(staged) }
                #expect(throws: CofferError(.reopenRequired)) { try attachments.beginStaging() }
                #expect(throws: CofferError(.reopenRequired)) { try attachments.remove([staged[0].digest.sha1]) }
            }
            #expect(try staged[0].open().wholeContent() == content(10, seed: 1))
            return recording.stepNames
        }
        let all = try attempt(nil)
        let syncs = all.indices.filter { isSync(all[$0]) }.dropLast()  // the last is of the rolling back
        #expect(syncs.count == (count == 10 ? 4 : 2 + count))
        for index in syncs {
            _ = try attempt(.fail(index + 1, EIO))
            try openStore(at: scratch.store)
            #expect(try isTidy(scratch.store))
        }
    }

    @Test("Installing attachments is refused, too, after a file couldn't be taken back")
    func failedRollBack() throws {
        // Created and written, announced, that synced, in its place, synced, and its directory: then the way back.
        let recording = RecordingFileSystem(.stopBefore(8))
        let scratch = Scratch()
        try makeStore(at: scratch.store)
        do {
            let (store, attachments) = try openAttachments(at: scratch.store, fileSystem: recording)
            defer { store.close() }
            let staged = [try attachments.stage(content(10))]
            try attachments.install(staged)
            attachments.didRollBack(staged)
            #expect(recording.stepNames.suffix(3).map { $0.prefix(6) } == ["rename", "unlink", "fsync "])
            #expect(throws: CofferError(.reopenRequired)) { try attachments.install(staged) }
            #expect(try staged[0].open().wholeContent() == content(10))
        }
        #expect(try names(in: attachmentsPath(ofStoreAt: scratch.store)).count == 1)
        try recover(scratch.store) { _ in false }
        #expect(try names(in: attachmentsPath(ofStoreAt: scratch.store)).isEmpty)
    }

    @Test("Installing is refused for files that couldn't be taken back on a full disk, and for no others")
    func fullDisk() throws {
        let scratch = Scratch.inMemory
        try makeStore(at: scratch.store)
        let (store, attachments) = try openAttachments(
            at: scratch.store, fileSystem: RecordingFileSystem(.fail(8, ENOSPC)))
        defer { store.close() }
        let staged = try attachments.stage(content(10))
        try attachments.install([staged])
        attachments.didRollBack([staged])
        #expect(try isTidy(scratch.store))
        #expect(try names(in: attachmentsPath(ofStoreAt: scratch.store)).isEmpty)
        #expect(throws: CofferError(.damaged)) { try attachments.install([staged]) }
        let again = [try attachments.stage(content(10)), try attachments.stage(content(20))]
        try attachments.install(again)
        attachments.didCommit(again)
        #expect(try again[0].open().wholeContent() == content(10))
        #expect(try names(in: attachmentsPath(ofStoreAt: scratch.store)).count == 2)
    }

    @Test(
        "Installing attachments that fails at a file which has its place taken leaves the content what it is",
        arguments: [1, 8])
    func failingAtTaken(count: Int) throws {
        let scratch = Scratch.inMemory
        try makeStore(at: scratch.store)
        let directory = try attachmentsPath(ofStoreAt: scratch.store)
        // Each is created and written; then two steps for an install intent, or four for a list.
        let rename = 2 * count + (count == 1 ? 2 : 4) + 1
        let recording = RecordingFileSystem(.fail(rename, EIO))
        let (store, attachments) = try openAttachments(at: scratch.store, fileSystem: recording)
        defer { store.close() }
        let staged = try (1...count).map { try attachments.stage(content(100, seed: UInt64($0))) }
        let path = try "\(directory)/\(attachments.naming.name(of: staged[0].digest.sha1))"
        try Data("has no row".utf8).write(to: URL(fileURLWithPath: path))
        #expect(throws: CofferError(.ioFailed)) { try attachments.install(staged) }
        #expect(recording.stepNames[rename - 1].hasPrefix("rename "))
        try attachments.install(staged)
        attachments.didCommit(staged)
        for (number, attachment) in zip(1..., staged) {
            let reader = try attachments.open(attachment.digest, header: attachment.header, subject: subject)
            #expect(try reader.wholeContent() == content(100, seed: UInt64(number)))
        }
    }

    @Test(
        "Installing and rolling back let more attachments be read than have their file open", arguments: [true, false])
    func manyReaders(isEncrypted: Bool) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted, in: .inMemory)
        let staged = try stage(70, in: fixture)
        func check(_ comment: Comment) {
            for (index, attachment) in staged.enumerated() {
                #expect((try? attachment.open().wholeContent()) == content(100, seed: UInt64(index + 1)), comment)
            }
        }
        try fixture.attachments.install(staged)
        check("installed")
        fixture.attachments.didRollBack(staged)
        check("rolled back")
        try fixture.attachments.install(staged)
        fixture.attachments.didCommit(staged)
        check("saved")
    }

    @Test("Installing by one thread lets others read what is staged, at every moment")
    func readingMeanwhile() throws {
        let fixture = try AttachmentFixture()
        for seed in 1...50 {
            let bytes = content(100, seed: UInt64(seed))
            let staged = try fixture.stage(bytes)
            let attachments = fixture.attachments
            DispatchQueue.concurrentPerform(iterations: 4) { index in
                if index == 0 {
                    #expect(throws: Never.self) { try attachments.install([staged]) }
                    attachments.didCommit([staged])
                } else {
                    for _ in 0..<30 { #expect((try? staged.open().wholeContent()) == bytes) }
                }
            }
        }
    }

    @Test("Installing attachments needs a store that is open for writing")
    func access() throws {
        let fixture = try AttachmentFixture()
        let saved = try fixture.save(content(10))
        let staged = try fixture.stage(content(20))
        fixture.store.close()
        #expect(throws: CofferError(.closed)) { try fixture.attachments.beginStaging() }
        #expect(throws: CofferError(.closed)) { try fixture.attachments.install([staged]) }
        #expect(throws: CofferError(.closed)) { try fixture.attachments.remove([saved.digest.sha1]) }
        #expect(throws: CofferError(.closed)) { try fixture.attachments.allNames() }
        #expect(throws: CofferError(.closed)) { try fixture.open(saved) }

        let (store, attachments) = try openAttachments(at: fixture.scratch.store, access: .readOnly)
        #expect(throws: CofferError(.readOnly)) { try attachments.beginStaging() }
        #expect(throws: CofferError(.readOnly)) { try attachments.remove([saved.digest.sha1]) }
        let reader = try attachments.open(saved.digest, header: saved.header, subject: subject)
        #expect(try reader.wholeContent() == content(10))
        store.close()
        #expect(try reader.wholeContent() == content(10))
    }

    @Test("Installing attachments is possible in no directory that is a link, and reading isn't either")
    func links() throws {
        for name in ["attachments", "incoming"] {
            let scratch = Scratch()
            try makeStore(at: scratch.store)
            let generation = try "\(scratch.store)/\(Manifest.read(path: scratch.store).generationName)"
            let outside = scratch.path + "/outside"
            try FileManager.default.moveItem(atPath: "\(generation)/\(name)", toPath: outside)
            try FileManager.default.createSymbolicLink(atPath: "\(generation)/\(name)", withDestinationPath: outside)
            for access in [LockedStore.Access.readWrite, .readOnly] {
                let error = #expect(throws: CofferError(.damaged)) {
                    try openAttachments(at: scratch.store, access: access)
                }
                #expect(error?.subject == "\(generation)/\(name)")
            }
        }
    }

    @Test("Installing attachments works on in directories that were open before, whatever their names mean by now")
    func replacedDirectory() throws {
        let fixture = try AttachmentFixture()
        let outside = fixture.scratch.path + "/outside"
        for name in ["attachments", "incoming"] {
            try FileManager.default.moveItem(atPath: "\(fixture.generation)/\(name)", toPath: "\(outside)-\(name)")
            try FileManager.default.createSymbolicLink(
                atPath: "\(fixture.generation)/\(name)", withDestinationPath: fixture.scratch.path)
        }
        _ = try fixture.save(content(10))
        #expect(names(in: outside + "-attachments").count == 1)
        #expect(fixture.scratch.names == ["outside-attachments", "outside-incoming", "people.coffer"])
    }

    @Test(
        "Installing in a copy without empty directories is possible after a recovery, and reading says what is missing")
    func withoutDirectories() throws {
        let scratch = Scratch()
        try makeStore(at: scratch.store)
        let generation = try "\(scratch.store)/\(Manifest.read(path: scratch.store).generationName)"
        for name in ["attachments", "incoming"] { try FileManager.default.removeItem(atPath: "\(generation)/\(name)") }
        #expect(throws: CofferError(.damaged)) { try openAttachments(at: scratch.store) }
        let (store, attachments) = try openAttachments(at: scratch.store, access: .readOnly)
        let digest = ContentDigest(
            sha1: [UInt8](repeating: 0, count: 20), sha256: [UInt8](repeating: 0, count: 32), byteCount: 0)
        #expect(!attachments.isPresent(digest.sha1))
        #expect(try attachments.allNames() == [])
        #expect(throws: CofferError(.damaged)) {
            try attachments.open(digest, header: [UInt8](repeating: 0, count: 56), subject: subject)
        }
        store.close()
        #expect(try openStore(at: scratch.store))
        let (again, restored) = try openAttachments(at: scratch.store)
        try restored.install([restored.stage([])])
        again.close()
    }
}
