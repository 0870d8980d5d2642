import CofferFaults
import CofferSealing
import Foundation
import Testing

@testable import CofferVault

/// An old generation in which something could not be removed stayed without a word, and every later opening for writing
/// failed with a bare 500.
@Suite("Old generations that can't be removed")
struct OldGenerationTests {
    let scratch = Scratch()
    private let old = "g0000000000000001-0000000000000000"

    /// A store with another generation, whose database begins with `head`.
    private func make(_ head: String, key: SymmetricKey? = rawKey()) throws {
        try makeStore(at: scratch.store, key: key)
        let contents = "\(scratch.store)/\(old)/attachments"
        try FileManager.default.createDirectory(atPath: contents, withIntermediateDirectories: true)
        for name in ["a.blob", "stays", "z.blob"] {
            try Data("text".utf8).write(to: URL(fileURLWithPath: "\(contents)/\(name)"))
        }
        let rest = String(repeating: "x", count: 100)
        try Data((head + rest).utf8).write(to: URL(fileURLWithPath: "\(scratch.store)/\(old)/db.sqlite3"))
    }

    private var left: Set<String> {
        Set(snapshotOfTree("\(scratch.store)/\(old)").keys.map { $0.split(separator: "/").last.map(String.init) ?? "" })
    }

    private func generations(key: SymmetricKey? = rawKey()) throws -> [LeftGeneration] {
        let store = try LockedStore.open(path: scratch.store, access: .readOnly)
        defer { store.close() }
        return try store.oldGenerations(beside: store.readManifest())
    }

    @Test("An encrypted one is tried again at each opening, and keeps nobody from writing")
    func encrypted() throws {
        try make("0123456789abcdef")
        for _ in 0..<3 {
            let double = RecordingFileSystem(.failEach("unlink stays", EPERM))
            #expect(try openStore(at: scratch.store, fileSystem: double))
            #expect(double.stepNames.contains("unlink stays"))
            // The mark says what the database would have.
            #expect(left == ["attachments", "stays", "encrypted"])
            let found = try #require(try generations().first)
            #expect(found.path == "\(scratch.store)/\(old)")
            #expect(!found.mayBeReadable)
        }
        #expect(try openStore(at: scratch.store))
        #expect(try isTidy(scratch.store))
        #expect(try generations().isEmpty)
    }

    @Test("An encrypted one whose removal was cut short, wherever, keeps nobody from writing")
    func cutShort() throws {
        for number in 1... {
            try? FileManager.default.removeItem(atPath: scratch.store)
            try make("0123456789abcdef")
            let double = RecordingFileSystem(.stopBefore(number))
            let isWhole = (try? openStore(at: scratch.store, fileSystem: double)) != nil
            // Immutable files, which the removal may not have come to.
            for _ in 0..<2 {
                _ = try openStore(at: scratch.store, fileSystem: RecordingFileSystem(.failEach("unlink stays", EPERM)))
                #expect(try generations().allSatisfy { !$0.mayBeReadable }, "cut short before step \(number)")
            }
            if isWhole { break }
        }
    }

    @Test(
        "An old generation that may be readable is a 500 that says where and what to do, when all else is gone",
        arguments: ["SQLite format 3\0", ""])
    func readable(head: String) throws {
        try make(head)
        if head.isEmpty {
            // As a change of the key leaves it that was killed before the database was copied.
            try Data().write(to: URL(fileURLWithPath: "\(scratch.store)/\(old)/db.sqlite3"))
        }
        let current = try Manifest.read(path: scratch.store).generationName
        try Data().write(to: URL(fileURLWithPath: "\(scratch.store)/\(current)/incoming/0123"))
        for number in 1...3 {
            let double = RecordingFileSystem(.failEach("unlink stays", EPERM))
            let error = #expect(throws: CofferError(.ioFailed)) {
                try openStore(at: scratch.store, fileSystem: double)
            }
            let first = double.stepNames.first { $0.hasPrefix("unlink ") && !$0.contains("MANIFEST") }
            if number == 1 { #expect(first == "unlink db.sqlite3") }
            #expect(error?.subject == "\(scratch.store)/\(old)")
            #expect(error?.detail?.contains("may be readable without a key") == true)
            #expect(error?.detail?.contains("chattr -R -i") == true)
            #expect(left == ["attachments", "stays"])
            #expect(try generations().map(\.mayBeReadable) == [true])
            #expect(try FileManager.default.contentsOfDirectory(atPath: "\(scratch.store)/\(current)/incoming").isEmpty)
        }
        #expect(try openStore(at: scratch.store))
        #expect(try isTidy(scratch.store))
    }

    @Test("An old generation that can be read keeps nobody from writing to a store that can be read itself")
    func unencrypted() throws {
        try make("SQLite format 3\0", key: nil)
        let double = RecordingFileSystem(.failEach("unlink stays", EPERM))
        #expect(try openStore(at: scratch.store, key: nil, fileSystem: double))
        #expect(left == ["attachments", "stays"])
        #expect(try generations(key: nil).map(\.mayBeReadable) == [true])
    }

    @Test("An old generation in which nothing is left but folders keeps nobody from writing")
    func empty() throws {
        try make("SQLite format 3\0")
        let double = RecordingFileSystem(.failEach("rmdir attachments", EBUSY))
        #expect(try openStore(at: scratch.store, fileSystem: double))
        #expect(left == ["attachments"])
        #expect(try generations().map(\.mayBeReadable) == [false])
    }

    @Test("A disk that fails while one is removed is an error as before")
    func failing() throws {
        try make("0123456789abcdef")
        let double = RecordingFileSystem(.failEach("unlink stays", EIO))
        let error = #expect(throws: CofferError(.ioFailed)) { try openStore(at: scratch.store, fileSystem: double) }
        #expect(error?.systemErrorNumber == EIO)
    }

    @Test("Something in incoming/ that can't be removed keeps nobody from writing, and nothing else from going")
    func incoming() throws {
        try makeStore(at: scratch.store)
        let incoming = "\(scratch.store)/\(try Manifest.read(path: scratch.store).generationName)/incoming"
        for name in ["a", "stays", "z"] { try Data().write(to: URL(fileURLWithPath: "\(incoming)/\(name)")) }
        #expect(
            try openStore(at: scratch.store, fileSystem: RecordingFileSystem(.failEach("unlink stays", EPERM))))
        #expect(try FileManager.default.contentsOfDirectory(atPath: incoming) == ["stays"])
        #expect(try openStore(at: scratch.store))
        #expect(try isTidy(scratch.store))
    }

    @Test("A MANIFEST.new that can't be removed is a 500 that says what to do")
    func temporaryManifest() throws {
        try makeStore(at: scratch.store)
        try Data().write(to: URL(fileURLWithPath: scratch.store + "/MANIFEST.new"))
        let double = RecordingFileSystem(.failEach("unlink MANIFEST.new", EPERM))
        let error = #expect(throws: CofferError(.ioFailed)) { try openStore(at: scratch.store, fileSystem: double) }
        #expect(error?.subject == scratch.store + "/MANIFEST.new")
        #expect(error?.detail?.contains("chattr -R -i") == true)
    }

    @Test(
        "Thousands of nested folders in incoming/, in an old generation and beside the store are removed with few descriptors",
        .timeLimit(.minutes(30)))
    func nested() async throws {
        try make("0123456789abcdef")
        let current = try Manifest.read(path: scratch.store).generationName
        try makeNestedFolders(5000, at: "\(scratch.store)/\(current)/incoming/0123")
        try makeNestedFolders(5000, at: "\(scratch.store)/\(old)/deep")
        try makeNestedFolders(5000, at: scratch.path + "/.coffer-0123456789abcdef")
        await #expect(processExitsWith: .success) { [path = scratch.path as String] in
            limitDescriptors(toFurther: 16)
            #expect(try openStore(at: path + "/people.coffer"))
            try makeStore(at: path + "/other.coffer")
        }
        #expect(try isTidy(scratch.store))
        #expect(scratch.names == ["other.coffer", "people.coffer"])
    }
}
