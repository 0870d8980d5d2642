import CofferSealing
import Foundation
import Synchronization
import Testing

@testable import CofferVault

@Suite("The file system")
struct FileSystemTests {
    let scratch = Scratch()
    let system = SystemFileSystem()
    let directory: Directory

    init() throws { directory = try system.openDirectory(path: scratch.path) }

    private func put(_ text: String, _ name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: scratch.path + "/" + name))
    }

    private func text(_ name: String) throws -> String {
        try String(contentsOfFile: scratch.path + "/" + name, encoding: .utf8)
    }

    private func errorNumber(_ body: () throws -> Void) -> Int32? {
        do {
            try body()
            return nil
        } catch {
            return (error as? CofferError)?.systemErrorNumber
        }
    }

    @Test("The file system makes files and directories that only their owner can use, and never over something")
    func making() throws {
        let file = try system.createFile("file", in: directory)
        try system.write(([1, 2, 3] as [UInt8]).span.bytes, to: file)
        try system.write(([4] as [UInt8]).span.bytes, to: file)
        try system.write([UInt8]().span.bytes, to: file)
        try system.makeDirectory("directory", in: directory)
        #expect(try system.status(of: file).permissions == 0o600)
        #expect(try system.status(of: file).byteCount == 4)
        #expect(try system.status(of: "directory", in: directory)?.permissions == 0o700)
        #expect(try system.read(10, from: file, at: 0) == [1, 2, 3, 4])
        #expect(try system.read(2, from: file, at: 1) == [2, 3])
        #expect(try system.read(2, from: file, at: 4) == [])
        try system.setPermissions(0o400, of: file)
        #expect(try system.status(of: file).permissions == 0o400)

        try FileManager.default.createSymbolicLink(atPath: scratch.path + "/link", withDestinationPath: "nowhere")
        for name in ["file", "directory", "link"] {
            #expect(errorNumber { _ = try system.createFile(name, in: directory) } == EEXIST)
            #expect(errorNumber { try system.makeDirectory(name, in: directory) } == EEXIST)
        }
        #expect(Set(try system.textNames(in: directory)) == ["file", "directory", "link"])
        // A second listing starts anew.
        #expect(try system.names(in: directory).count == 3)
    }

    @Test("The file system follows no link below a directory")
    func links() throws {
        try put("text", "file")
        try system.makeDirectory("directory", in: directory)
        try FileManager.default.createSymbolicLink(atPath: scratch.path + "/to-file", withDestinationPath: "file")
        try FileManager.default.createSymbolicLink(
            atPath: scratch.path + "/to-directory", withDestinationPath: "directory")
        #expect(errorNumber { _ = try system.openFile("to-file", in: directory) } == ELOOP)
        let number = errorNumber { _ = try system.openDirectory("to-directory", in: directory) }
        #expect(number == ENOTDIR || number == ELOOP)
        #expect(try system.status(of: "to-file", in: directory)?.kind == .symbolicLink)
        #expect(try system.status(of: "missing", in: directory) == nil)
        try system.unlink("to-file", in: directory)
        try system.removeTree("to-directory", in: directory)
        #expect(scratch.names == ["directory", "file"])
    }

    @Test("The file system opens nothing that a started process would inherit")
    func closeOnExec() throws {
        let made = try system.createFile("file", in: directory)
        let opened = try system.openFile("file", in: directory)
        let inner = try system.openDirectory(".", in: directory)
        for descriptor in [made.descriptor, opened.descriptor, inner.descriptor, directory.descriptor] {
            #expect(fcntl(descriptor, F_GETFD) == FD_CLOEXEC)
        }
    }

    @Test("The file system opens what is no file without waiting for it", .timeLimit(.minutes(30)))
    func fifo() throws {
        #expect(mkfifo(scratch.path + "/fifo", 0o600) == 0)
        #expect(try system.status(of: system.openFile("fifo", in: directory)).kind == .pipe)
    }

    @Test("The file system renames over something, without replacing, and exchanges")
    func renaming() throws {
        try put("a", "a")
        try put("b", "b")
        try system.makeDirectory("empty", in: directory)
        for name in ["b", "empty", "a"] {
            #expect(
                errorNumber { try system.renameWithoutReplacing("a", in: directory, to: name, in: directory) } == EEXIST
            )
        }
        try system.makeDirectory("other", in: directory)
        #expect(
            errorNumber { try system.renameWithoutReplacing("other", in: directory, to: "empty", in: directory) }
                == EEXIST)
        try system.renameWithoutReplacing("a", in: directory, to: "c", in: system.openDirectory("other", in: directory))
        #expect(try text("other/c") == "a")
        try system.exchange("b", in: directory, with: "other", in: directory)
        #expect(try text("b/c") == "a")
        #expect(try text("other") == "b")
        #expect(errorNumber { try system.exchange("b", in: directory, with: "missing", in: directory) } == ENOENT)
        try put("new", "new")
        try system.rename("new", in: directory, to: "other", in: directory)
        #expect(try text("other") == "new")
    }

    @Test("The file system syncs files, directories and all of itself")
    func syncing() throws {
        let file = try system.createFile("file", in: directory)
        #expect(throws: Never.self) { try system.synchronize(file) }
        #expect(throws: Never.self) { try system.synchronize(directory) }
        #expect(throws: Never.self) { try system.synchronizeFileSystem(of: directory) }
    }

    @Test("The file system removes a tree and nothing else, and what is missing is fine")
    func removingTrees() throws {
        try FileManager.default.createDirectory(atPath: scratch.path + "/a/b/c", withIntermediateDirectories: true)
        try put("text", "a/b/file")
        try put("stays", "stays")
        try FileManager.default.createSymbolicLink(atPath: scratch.path + "/a/b/up", withDestinationPath: scratch.path)
        try system.removeTree("a", in: directory)
        try system.removeTree("a", in: directory)
        #expect(scratch.names == ["stays"])
        try system.removeTree("stays", in: directory)
        #expect(scratch.names == [])
    }

    @Test(
        "The file system reports a full disk as 507",
        .enabled(if: FileManager.default.fileExists(atPath: "/dev/full"), "needs /dev/full"))
    func fullDisk() {
        let full = File(adopting: open("/dev/full", O_WRONLY), path: "/dev/full")
        #expect(throws: CofferError(.noSpace)) { try system.write(([1] as [UInt8]).span.bytes, to: full) }
    }

    @Test("The file system reports a descriptor that can't be read or synced")
    func failures() {
        let closed = File(adopting: -1, path: "closed")
        #expect(errorNumber { try system.synchronize(closed) } == EBADF)
        #expect(errorNumber { _ = try system.read(1, from: closed, at: 0) } == EBADF)
        #expect(errorNumber { try system.write(([1] as [UInt8]).span.bytes, to: closed) } == EBADF)
    }

    @Test("The file system calls again when a signal came between, and throws 501 for what the file system lacks")
    func attempts() throws {
        var results: [(Int32, Int32)] = [(-1, EINTR), (-1, EINTR), (3, 0), (-1, EIO)]
        let next = { () -> Int32 in
            let (result, number) = results.removeFirst()
            errno = number
            return result
        }
        #expect(try attempt("call", "path", next) == 3)
        #expect(errorNumber { try attempt("call", "path", next) } == EIO)
        #expect(results.isEmpty)
        for number in [EINVAL, ENOSYS, ENOTSUP] {
            let error = #expect(throws: CofferError(.unsupportedFormat)) {
                try attemptWhereSupported("exchange", "path") {
                    errno = number
                    return -1
                }
            }
            #expect(error?.systemErrorNumber == number)
        }
        #expect(throws: CofferError(.ioFailed)) {
            try attemptWhereSupported("exchange", "path") {
                errno = EEXIST
                return -1
            }
        }
    }

    /// A pipe takes 64 KiB at once, and a signal ends a write that waits, with what was written until then.
    @Test("The file system writes everything when signals cut its writes short", .timeLimit(.minutes(30)))
    func shortWrites() async {
        await #expect(processExitsWith: .success) {
            // A write that never ends would keep the test for ever.
            alarm(1_200)
            var action = sigaction()
            #if canImport(Darwin)
            action.__sigaction_u.__sa_handler = { _ in }
            #else
            action.__sigaction_handler.sa_handler = { _ in }
            #endif
            try #require(sigaction(SIGUSR1, &action, nil) == 0)
            var ends: [Int32] = [0, 0]
            try #require(pipe(&ends) == 0)
            let writer = File(adopting: ends[1], path: "pipe")
            let bytes = (0..<4_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 3) }
            let isDone = Atomic(false)
            let thread = Lock<pthread_t?>(nil)
            Thread.detachNewThread {
                var mask = sigset_t()
                sigemptyset(&mask)
                sigaddset(&mask, SIGUSR1)
                pthread_sigmask(SIG_UNBLOCK, &mask, nil)
                thread.withLock { $0 = pthread_self() }
                try? SystemFileSystem().write(bytes.span.bytes, to: writer)
                isDone.store(true, ordering: .sequentiallyConsistent)
                // The thread stays, so that it can still be signalled.
                while true { sleep(1) }
            }
            var read: [UInt8] = []
            var signals = 0
            var buffer = [UInt8](repeating: 0, count: 50_000)
            while read.count < bytes.count {
                if let writing = thread.withLock({ $0 }), !isDone.load(ordering: .sequentiallyConsistent) {
                    pthread_kill(writing, SIGUSR1)
                    signals += 1
                    usleep(200)
                }
                let count = Foundation.read(ends[0], &buffer, buffer.count)
                try #require(count > 0)
                read += buffer[..<count]
            }
            try #require(read == bytes)
            try #require(signals > 20)
        }
    }
}
