import CofferFaults
import CofferSealing
import Foundation
import Testing

@testable import CofferVault

/// Names that are not UTF-8 went through `String` and came back as others, so that nothing of those names was found, and the
/// whole tree stayed. One thing that couldn't be removed kept everything after it, and each level of folders took a
/// descriptor and a path.
@Suite("Removing a tree")
struct TreeRemovalTests {
    let scratch = Scratch()
    let system = SystemFileSystem()

    private func directory() throws -> Directory { try system.openDirectory(path: scratch.path) }

    private func make(_ path: String, _ bytes: Data = Data("x".utf8)) throws {
        let url = URL(fileURLWithPath: scratch.path + "/" + path)
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try bytes.write(to: url)
    }

    @Test("Names of files, folders and links that are not UTF-8 are removed, and shown with their bytes")
    func bytes() throws {
        let names = [
            FileName(bytes: [0xFF]), FileName(bytes: [0x61, 0xC3, 0x28, 0xA0]), FileName("é"), FileName("a\nb"),
        ]
        #expect(names.map(\.description) == ["\\xff", "a\\xc3(\\xa0", "é", "a\\x0ab"])
        #expect(names.map { $0.text == nil } == [true, true, false, false])
        try system.makeDirectory("tree", in: directory())
        let parent = try system.openDirectory("tree", in: directory())
        for (number, name) in names.enumerated() {
            #expect(name.withCString { mkdirat(parent.descriptor, $0, 0o700) } == 0)
            let folder = try system.openDirectory(name, in: parent)
            let file = names[(number + 1) % names.count]
            let opened = file.withCString { openat(folder.descriptor, $0, O_CREAT | O_WRONLY, 0o600) }
            try #require(opened >= 0)
            close(opened)
            #expect(FileName("link").withCString { symlinkat("..", folder.descriptor, $0) } == 0)
            #expect(try system.status(of: file, in: folder)?.kind == .file)
        }
        #expect(try Set(system.names(in: parent)) == Set(names))
        try system.removeTree("tree", in: directory())
        #expect(scratch.names == [])
    }

    @Test("An entry whose removal is refused keeps nothing else of a tree, and the error counts what is left")
    func refused() throws {
        for number in 0..<3 {
            try make("tree/\(number)/a")
            try make("tree/\(number)/stays")
            try make("tree/\(number)/z/z")
        }
        let double = RecordingFileSystem(.failEach("unlink stays", EPERM))
        let parent = try directory()
        let error = #expect(throws: CofferError(.ioFailed)) { try double.removeTree("tree", in: parent) }
        #expect(error?.systemErrorNumber == EPERM)
        #expect(error?.detail?.hasSuffix(", and 2 more are left") == true)
        #expect(
            snapshotOfTree(scratch.path).keys.sorted() == [
                "tree", "tree/0", "tree/0/stays", "tree/1", "tree/1/stays", "tree/2", "tree/2/stays",
            ])
        // Whether the disk fails says more than a refusal that came before.
        let failing = RecordingFileSystem(.failFirst("unlink stays", EIO))
        try make("tree/0/a")
        let worse = #expect(throws: CofferError(.ioFailed)) { try failing.removeTree("tree", in: parent) }
        #expect(worse?.systemErrorNumber == EIO)
        try system.removeTree("tree", in: parent)
        #expect(scratch.names == [])
    }

    @Test("A directory that can't be opened goes where it is empty, as one does that another user has just made")
    func unopenable() throws {
        for name in ["tree/closed", "tree/m/closed", "closed"] {
            try FileManager.default.createDirectory(
                atPath: scratch.path + "/" + name, withIntermediateDirectories: true)
        }
        let double = RecordingFileSystem(unopenable: "closed", EACCES)
        try double.removeTree("tree", in: directory())
        try double.removeTree("closed", in: directory())
        #expect(scratch.names == [])
        try make("closed/stays")
        let error = #expect(throws: CofferError.self) { try double.removeTree("closed", in: directory()) }
        #expect(error?.systemErrorNumber == EACCES)
    }

    @Test("Given names go first in every directory, and the others in the order of their bytes")
    func order() throws {
        for name in ["tree/b", "tree/a", "tree/z", "tree/m/z", "tree/m/b", "tree/m/a"] { try make(name) }
        let double = RecordingFileSystem()
        try double.removeTree("tree", in: directory(), first: [FileName("z")])
        #expect(
            double.stepNames == [
                "unlink z", "unlink a", "unlink b", "unlink z", "unlink a", "unlink b", "rmdir m", "rmdir tree",
            ])
    }

    @Test("Twenty thousand nested folders are removed with sixteen descriptors", .timeLimit(.minutes(30)))
    func nested() async throws {
        try makeNestedFolders(20_000, at: scratch.path + "/tree")
        await #expect(processExitsWith: .success) { [path = scratch.path as String] in
            limitDescriptors(toFurther: 16)
            let system = SystemFileSystem()
            try system.removeTree("tree", in: system.openDirectory(path: path))
        }
        #expect(scratch.names == [])
        // Where it is not removed, Foundation's own way to clean up needs as many.
        _ = try? system.removeTree("tree", in: directory())
    }

    @Test("A walk that can't find its way back ends with an error, and goes nowhere else")
    func moved() throws {
        try makeNestedFolders(200, at: scratch.path + "/tree")
        try make("outside/stays")
        var walk = try TreeWalk(below: system.openDirectory("tree", in: directory()), system)
        let sixtyFour = String(repeating: "f/", count: 64)
        while walk.depth < 129, try walk.step() != nil {}
        #expect(walk.path(of: FileName("x")) == sixtyFour + sixtyFour + "x")
        while walk.depth < 190, try walk.step() != nil {}
        #expect(walk.path(of: FileName("x")) == sixtyFour + "…/" + sixtyFour + "x")
        let inner = scratch.path + "/tree" + String(repeating: "/f", count: 10)
        #expect(rename(inner, scratch.path + "/outside/moved") == 0)
        var ended = 0
        let error = #expect(throws: CofferError(.ioFailed)) {
            while let step = try walk.step() { if case .end = step { ended += 1 } }
        }
        #expect(error?.detail == "somebody moved it meanwhile")
        // All of those that were moved were gone through.
        #expect(ended == 200 - 10)
        #expect(FileManager.default.fileExists(atPath: scratch.path + "/outside/stays"))
    }

    @Test("A walk opens no more levels than its limit, and says where it stopped", arguments: [1, 2, 9, 10])
    func limited(limit: Int) throws {
        try makeNestedFolders(10, at: scratch.path + "/tree")
        var walk = try TreeWalk(
            below: system.openDirectory("tree", in: directory()), system, depthLimit: limit)
        var tooDeep: [String] = []
        while let step = try walk.step() {
            if case .tooDeep(let name, _) = step { tooDeep.append(walk.path(of: name)) }
        }
        #expect(tooDeep == (limit > 10 ? [] : [Array(repeating: "f", count: limit).joined(separator: "/")]))
    }
}

/// Makes a folder at `path` with so many others in it, each in the one before, called `f`.
func makeNestedFolders(_ count: Int, at path: String) throws {
    try #require(mkdir(path, 0o700) == 0)
    var folder = open(path, O_RDONLY | O_DIRECTORY)
    for _ in 0..<count {
        try #require(mkdirat(folder, "f", 0o700) == 0)
        let inner = openat(folder, "f", O_RDONLY | O_DIRECTORY)
        try #require(inner >= 0)
        close(folder)
        folder = inner
    }
    close(folder)
}

/// Lets this process, which is a test's own, open no more than so many files and directories beside those that it has.
func limitDescriptors(toFurther count: Int) {
    var highest: Int32 = 2
    for descriptor: Int32 in 0..<4096 where fcntl(descriptor, F_GETFD) >= 0 { highest = descriptor }
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = rlim_t(highest + 1) + rlim_t(count)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
