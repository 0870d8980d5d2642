import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

@Suite("Recovery of attachments that were being saved")
struct AttachmentRecoveryTests {
    /// A store with one attachment whose row was committed and one whose row wasn't, each announced, and the names of both.
    private func interrupted(
        names: Manifest.AttachmentNames = .sha1
    ) throws -> (scratch: Scratch, generation: String, saved: String, unsaved: String) {
        let scratch = Scratch.inMemory
        let fixture = try AttachmentFixture(names: names, in: scratch)
        let both = try (1...2).map { try fixture.stage(content(100, seed: $0)) }
        try fixture.attachments.install(both)
        let digests = try both.map { try fixture.attachments.naming.name(of: $0.digest.sha1) }
        return (scratch, fixture.generation, digests[0], digests[1])
    }

    @Test(
        "Recovery of attachments removes the file that has no row and keeps the one that has",
        arguments: [Manifest.AttachmentNames.sha1, .keyed])
    func removes(names: Manifest.AttachmentNames) throws {
        let (scratch, generation, saved, unsaved) = try interrupted(names: names)
        var asked: [String] = []
        try recover(scratch.store) { name in
            asked.append(name)
            return name == saved
        }
        #expect(asked.sorted() == [saved, unsaved].sorted())
        #expect(CofferVaultTests.names(in: generation + "/attachments") == [saved])
        #expect(try isTidy(scratch.store))
    }

    @Test("Recovery leaves a file that the system refuses to remove, and what announces it, to the next one")
    func refused() throws {
        let (scratch, generation, _, immutable) = try interrupted()
        for _ in 0..<2 {
            // Neither has a row there.
            let double = RecordingFileSystem(.failEach("unlink \(immutable)", EPERM))
            #expect(try openStore(at: scratch.store, fileSystem: double))
            #expect(names(in: generation + "/attachments") == [immutable])
            #expect(!names(in: generation + "/incoming").isEmpty)
        }
        #expect(try openStore(at: scratch.store))
        #expect(names(in: generation + "/attachments") == [])
        #expect(try isTidy(scratch.store))
    }

    @Test("Recovery of attachments asks about no file that isn't there, and only once about one")
    func asks() throws {
        let (scratch, generation, saved, unsaved) = try interrupted()
        try FileManager.default.removeItem(atPath: "\(generation)/attachments/\(unsaved)")
        for number in 1...3 {
            try Data().write(to: URL(fileURLWithPath: "\(generation)/incoming/\(saved).000000000000000\(number)"))
        }
        var asked: [String] = []
        try recover(scratch.store) { name in
            asked.append(name)
            return true
        }
        #expect(asked == [saved])
        #expect(names(in: generation + "/attachments") == [saved])
    }

    @Test("Recovery of attachments keeps what nothing announces, with a row or without")
    func unannounced() throws {
        let (scratch, generation, saved, unsaved) = try interrupted()
        for name in names(in: generation + "/incoming") {
            try FileManager.default.removeItem(atPath: "\(generation)/incoming/\(name)")
        }
        try Data().write(to: URL(fileURLWithPath: generation + "/incoming/0123456789abcdef"))
        try recover(scratch.store) { _ in
            Issue.record("it asked")
            return false
        }
        #expect(names(in: generation + "/attachments") == [saved, unsaved].sorted())
    }

    @Test("Recovery of attachments removes whatever else is on its way, and takes no other name for an install intent")
    func otherNames() throws {
        let (scratch, generation, saved, unsaved) = try interrupted()
        let others = ["notes.txt", "x.blob", unsaved.uppercased(), String(unsaved.dropLast(5)), "a" + unsaved]
        for other in others { try Data().write(to: URL(fileURLWithPath: "\(generation)/attachments/\(other)")) }
        for name in (others + [".", ".."]).map({ $0 + ".0123456789abcdef" }) + ["0123456789abcdef", "x", "é.blob"] {
            try Data().write(to: URL(fileURLWithPath: "\(generation)/incoming/\(name)"))
        }
        try FileManager.default.createDirectory(
            atPath: generation + "/incoming/directory/in/it", withIntermediateDirectories: true)
        try recover(scratch.store) { $0 == saved }
        #expect(names(in: generation + "/attachments") == ([saved] + others).sorted())
        #expect(try isTidy(scratch.store))
    }

    @Test(
        "Recovery of attachments leaves alone what is no file under an announced name",
        arguments: ["directory", "link"])
    func noFile(kind: String) throws {
        let (scratch, generation, saved, unsaved) = try interrupted()
        let path = "\(generation)/attachments/\(unsaved)"
        try FileManager.default.removeItem(atPath: path)
        switch kind {
        case "directory": try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        default:
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: scratch.store + "/MANIFEST")
        }
        try recover(scratch.store) { $0 == saved }
        #expect(names(in: generation + "/attachments") == [saved, unsaved].sorted())
        #expect(FileManager.default.fileExists(atPath: scratch.store + "/MANIFEST"))
    }

    @Test("Recovery removes a file durably before what announces it, and everything after MANIFEST and the binding row")
    func order() throws {
        let (scratch, _, saved, unsaved) = try interrupted()
        let recording = RecordingFileSystem()
        try recover(scratch.store, fileSystem: recording) { $0 == saved }
        let steps = Array(recording.stepNames.suffix(6))
        #expect(
            Array(steps[..<3]) == [
                "fsync directory people.coffer", "unlink \(unsaved)", "fsync directory attachments",
            ])
        #expect(
            steps[3...4].map { String($0.dropLast(17)) }.sorted() == [saved, unsaved].sorted().map { "unlink \($0)" })
        #expect(steps[5] == "fsync directory incoming")
    }

    @Test("Recovery of attachments removes nothing when it can't be told which have a row")
    func unknownRows() throws {
        let (scratch, generation, saved, unsaved) = try interrupted()
        let store = try LockedStore.open(path: scratch.store, access: .readWrite)
        let unlocked = try store.readManifest().unlock(with: rawKey())
        #expect(throws: CofferError(.damaged)) {
            try store.recover(
                unlocked, attachmentHasRow: { _ throws(CofferError) in throw CofferError(.damaged) },
                updatingBindingRow: { _ in })
        }
        store.close()
        #expect(names(in: generation + "/attachments") == [saved, unsaved].sorted())
        #expect(names(in: generation + "/incoming").count == 2)
        try recover(scratch.store) { $0 == saved }
        #expect(names(in: generation + "/attachments") == [saved])
    }

    @Test("Recovery of attachments cut short or failing at any step is finished by the next")
    func cutShort() throws {
        let (whole, _, first, _) = try interrupted()
        let recording = RecordingFileSystem()
        try recover(whole.store, fileSystem: recording) { $0 == first }
        for number in 1...recording.stepCount {
            for fault in [Fault.stopBefore(number), .fail(number, EIO), .failAfter(number, EIO)] {
                let (scratch, generation, saved, _) = try interrupted()
                #expect(throws: CofferError.self) {
                    try recover(scratch.store, fileSystem: RecordingFileSystem(fault)) { $0 == saved }
                }
                #expect(names(in: generation + "/attachments").contains(saved), "\(fault)")
                try recover(scratch.store) { $0 == saved }
                #expect(names(in: generation + "/attachments") == [saved], "\(fault)")
                #expect(try isTidy(scratch.store), "\(fault)")
            }
        }
    }
}
