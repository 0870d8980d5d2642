import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Every command where the system doesn't do what it should: disks, pipes, signals, owners.
@Suite("Bad surroundings", .timeLimit(.minutes(30)))
struct BadSystemTests {
    private static let root = geteuid() == 0

    /// A file system in memory, gone with its last reference. Only root may mount one, on Linux.
    private final class Disk {
        let folder: URL

        static let isAvailable = (try? Disk(kilobytes: 64)) != nil

        init(kilobytes: Int) throws {
            folder = FileManager.default.temporaryDirectory.appending(path: "coffer-tool-disk-\(UUID())")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try change("mount", ["-t", "tmpfs", "-o", "size=\(kilobytes)k", "none", folder.path])
        }

        deinit {
            try? change("umount", ["-l", folder.path])
            try? FileManager.default.removeItem(at: folder)
        }

        /// A file that another test's process has inherited may still be open for writing there.
        func makeReadOnly() throws {
            let isReadOnly = eventually { (try? change("mount", ["-o", "remount,ro", folder.path])) != nil }
            guard isReadOnly else { throw POSIXError(.EBUSY) }
        }

        /// Takes all the space that is left, but for a few pages.
        func fill() throws {
            let attributes = try FileManager.default.attributesOfFileSystem(forPath: folder.path)
            let free = (attributes[.systemFreeSize] as? NSNumber)?.intValue ?? 0
            try Data(count: max(0, free - 8192)).write(to: ballast)
        }

        /// Undoes ``fill()``. A process that another test started meanwhile may have the file open, and would keep its space.
        func empty() throws {
            try FileHandle(forWritingTo: ballast).truncate(atOffset: 0)
            try FileManager.default.removeItem(at: ballast)
        }

        private var ballast: URL { folder.appending(path: "ballast") }

        private func change(_ command: String, _ arguments: [String]) throws {
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            process.arguments = [command] + arguments
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            guard process.terminationStatus == 0 else { throw POSIXError(.EPERM) }
        }
    }

    // MARK: Disks

    @Test(
        "A file system that can only be read stops every command that writes, with its name, and no other",
        .enabled(if: Disk.isAvailable, "only root mounts file systems, on Linux"), arguments: MatrixCommand.all)
    func readOnlyDisk(command: MatrixCommand) throws {
        let disk = try Disk(kilobytes: 16 << 10)
        let folder = try MatrixFolder(at: disk.folder)
        let before = try folder.work.contents(of: ".")
        try disk.makeReadOnly()
        // What the test itself keeps of a process is elsewhere.
        let outcome = try run(folder, command, command.line(slot: folder.slot) + ["--json"])
        let fails = command.writes || !command.makes.isEmpty || command.name == "doctor"
        #expect(outcome.status == (fails ? 1 : 0), "\(outcome.errors)")
        if fails && command.name != "doctor" {
            let code = try outcome.failure["code"] as? String
            #expect(["readOnly", "ioFailed"].contains(code), "\(outcome.errors)")
        }
        #expect(try folder.work.contents(of: ".") == before)
    }

    @Test(
        "A full disk is exit status 28, and the store stays as it was",
        .enabled(if: Disk.isAvailable, "only root mounts file systems, on Linux"), arguments: MatrixCommand.all)
    func fullDisk(command: MatrixCommand) throws {
        let disk = try Disk(kilobytes: 16 << 10)
        let folder = try MatrixFolder(at: disk.folder)
        try disk.fill()
        let outcome = try run(folder, command, command.line(slot: folder.slot) + ["--json"])
        // What needs less than the few pages that are left succeeds.
        let needsMuch = [
            "attach", "import", "rekey", "convert", "rotate", "encrypt", "decrypt", "backup", "salvage", "create",
            "doctor",
        ].contains(command.name)
        #expect([0, 28].contains(outcome.status) && (!needsMuch || outcome.status == 28), "\(outcome.errors)")
        if outcome.status == 28 && command.name != "doctor" {
            #expect(try outcome.failure["code"] as? String == "noSpace", "\(outcome.errors)")
        }
        try disk.empty()
        if outcome.status != 0 {
            for name in command.makes {
                #expect(!FileManager.default.fileExists(atPath: disk.folder.appending(path: name).path), "\(name)")
            }
        }
        if command.writes { try expectWhole(folder, command) }
    }

    @Test(
        "A rehearsal of a rotation says that the disk can't be written, or that a second copy of a store has no room",
        .enabled(if: Disk.isAvailable, "only root mounts file systems, on Linux"), arguments: [true, false])
    func rehearsal(isFull: Bool) throws {
        let disk = try Disk(kilobytes: 16 << 10)
        let folder = try MatrixFolder(at: disk.folder)
        let command = try #require(MatrixCommand.all.first { $0.name == "rotate" })
        let line = command.line(slot: folder.slot) + ["--dry-run", "--json"]
        #expect(try run(folder, command, line).status == 0)
        if isFull { try disk.fill() } else { try disk.makeReadOnly() }
        let outcome = try run(folder, command, line)
        #expect(outcome.status == (isFull ? 28 : 1), "\(outcome.errors)")
        #expect(try outcome.failure["code"] as? String == (isFull ? "noSpace" : "readOnly"), "\(outcome.errors)")
    }

    /// With the files that stand for a process's surroundings on another disk.
    private func run(_ folder: MatrixFolder, _ command: MatrixCommand, _ line: [String]) throws -> CofferProcess.Outcome
    {
        let elsewhere = try Workspace()
        return try CofferProcess.run(
            line, in: folder.work.folder, CofferProcess.Surroundings(input: Data(command.input.utf8)),
            keepingFilesIn: elsewhere.folder, goesOnForEver: command.goesOnForEver)
    }

    // MARK: Pipes

    @Test("An output that is closed, or that nobody reads, harms no store", arguments: MatrixCommand.all)
    func closedOutput(command: MatrixCommand) throws {
        for redirection in [">&-", "<&- >&- 2>&-", "| true"] {
            let folder = try MatrixFolder()
            try folder.work.write(command.input, to: "input")
            let words = command.line(slot: folder.slot).map { "'\($0)'" }.joined(separator: " ")
            let reading = redirection.contains("<") ? "" : "<input"
            let ended = command.goesOnForEver ? "timeout -s TERM 2 " : ""
            _ = try folder.work.shell("\(ended)$coffer \(words) \(reading) \(redirection)")
            if command.writes { try expectWhole(folder, command) }
        }
    }

    @Test("A result that can't be written is a failure, and no file is taken for a closed output")
    func noOutput() throws {
        let folder = try MatrixFolder()
        #expect(try folder.work.shell("$coffer get people.coffer robin --key raw+file:key >&- 2>errors").status == 1)
        #expect(try folder.work.shell("grep -q '^coffer: error: ' errors").status == 0)
        #expect(try folder.work.shell("$coffer put people.coffer new --key raw+file:key <&- 2>/dev/null").status == 1)
        // The command that says the key looks at what its parent has there. Files get the lowest numbers that are free.
        let look = "readlink /proc/$PPID/fd/0 /proc/$PPID/fd/1 /proc/$PPID/fd/2 >descriptors; cat key"
        _ = try folder.work.shell("$coffer get people.coffer robin --key 'raw+cmd:\(look)' <&- >&- 2>&-")
        #if canImport(Glibc)
        let descriptors = try String(contentsOf: folder.work.folder.appending(path: "descriptors"), encoding: .utf8)
        #expect(descriptors.split(separator: "\n") == ["/dev/null", "/dev/null", "/dev/null"])
        #endif
    }

    // MARK: Signals

    @Test(
        "A signal at any moment leaves each store whole, under exactly one of the keys",
        arguments: MatrixCommand.writers)
    func signals(command: MatrixCommand) throws {
        var random = SeededNumbers(seed: UInt64(command.name.utf8.reduce(0) { $0 * 31 + Int($1) }))
        for round in 0..<4 {
            let folder = try MatrixFolder()
            let delay = UInt32.random(in: 0..<60_000, using: &random)
            let outcome = try folder.run(command, command.line(slot: folder.slot)) { process in
                usleep(delay)
                kill(process, round % 2 == 0 ? SIGINT : SIGTERM)
            }
            #expect([0, 3, 130, 128 + SIGINT, 128 + SIGTERM].contains(outcome.status), "\(delay): \(outcome.errors)")
            if command.writes { try expectWhole(folder, command) }
        }
    }

    // MARK: Owners

    private static let keyNames = ["key", "new-key", "another-key"]

    @Test(
        "Root in another user's folder does all there is with keys that only root can read, and all of it is theirs",
        .enabled(if: root, "only root can act as another user"),
        arguments: MatrixCommand.all.filter { $0.name != "key generate" })
    func owner(command: MatrixCommand) throws {
        let folder = try MatrixFolder()
        let top = folder.work.folder.path
        func all() throws -> [String] {
            try [top]
                + FileManager.default.subpathsOfDirectory(atPath: top).filter { !Self.keyNames.contains($0) }
                .map { "\(top)/\($0)" }
        }
        for path in try all() { try #require(lchown(path, 65_534, 65_534) == 0) }
        for name in Self.keyNames { try #require(chmod("\(top)/\(name)", 0o600) == 0) }
        let outcome = try folder.run(command, command.line(slot: folder.slot))
        #expect(outcome.status == 0, "\(outcome.errors)")
        for path in try all() {
            var status = stat()
            try #require(lstat(path, &status) == 0)
            #expect(status.st_uid == 65_534 && status.st_gid == 65_534, "\(path)")
        }
        for name in command.makes { #expect(access("\(top)/\(name)", F_OK) == 0, "\(name)") }
        if command.writes { try expectWhole(folder, command) }
    }

    // MARK: What is whole

    /// Sees that the stores that the command is about are sound, open with exactly one of the keys, and have their documents.
    private func expectWhole(_ folder: MatrixFolder, _ command: MatrixCommand) throws {
        let stores = command.subject == "stores" ? ["stores/a.coffer", "stores/b.coffer"] : [command.subject ?? ""]
        for store in stores {
            var opening: [String?] = []
            for key in ["raw+file:key", "raw+file:new-key", nil] {
                let outcome = try CofferProcess.run(
                    ["check", store] + (key.map { ["--key", $0] } ?? []), in: folder.work.folder)
                #expect([0, 12].contains(outcome.status), "\(store): \(outcome.output)\(outcome.errors)")
                if outcome.status == 0 { opening.append(key) }
            }
            // A key that is added is one more.
            #expect(opening.count == 1 || command.name == "key add" && opening.count == 2, "\(store): \(opening)")
            let list = try CofferProcess.run(
                ["ls", store] + (opening.first.flatMap { $0 }.map { ["--key", $0] } ?? []), in: folder.work.folder)
            #expect(list.lines.contains("robin") || command.name == "rm", "\(list.errors)")
        }
    }
}
