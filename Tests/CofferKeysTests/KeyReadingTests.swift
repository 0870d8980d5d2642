import Coffer
import CofferKeys
import Foundation
import Testing

@Suite("Reading a key from its source")
struct KeyReadingTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "coffer-keys-\(UUID())")
    private let bytes = Data(1...32)

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private func file(_ name: String, _ contents: Data) throws -> String {
        let url = folder.appending(path: name)
        try contents.write(to: url)
        return url.path(percentEncoded: false)
    }

    private func error(_ source: KeySource) -> KeySourceError? {
        #expect(throws: KeySourceError.self) { try SymmetricKey(from: source) }
    }

    @Test("A file, a variable, a descriptor and a command yield the same key")
    func sources() throws {
        let path = try file("key", bytes)
        let expected = try SymmetricKey(data: bytes)
        #expect(try SymmetricKey(from: .file(path, as: .raw)) == expected)
        #expect(try SymmetricKey(from: .command("cat '\(path)'", as: .raw)) == expected)
        let descriptor = open(path, O_RDONLY)
        #expect(try SymmetricKey(from: .descriptor(descriptor, as: .raw)) == expected)
        // It was closed, so that nobody reads it again; by now it may be another's.
        var (closed, file) = (stat(), stat())
        try #require(stat(path, &file) == 0)
        #expect(fstat(descriptor, &closed) != 0 || closed.st_ino != file.st_ino)
        let home = try #require(ProcessInfo.processInfo.environment["PATH"])
        #expect(try SymmetricKey(from: .environment("PATH")) == SymmetricKey(password: home))
    }

    @Test("The key from a source opens the store that it made, and another one is a wrong key and no error of a source")
    func store() throws {
        let manager = try Manager(directory: folder)
        var options = DatabaseOptions()
        options.create = true
        options.encryptionKey = try SymmetricKey(from: .file(file("key", bytes), as: .raw))
        try manager.openDatabase(named: "people", options: options).close()
        options.encryptionKey = try SymmetricKey(from: .file(file("other", Data(2...33)), as: .raw))
        let wrong = #expect(throws: CofferError.self) { try manager.openDatabase(named: "people", options: options) }
        #expect(wrong?.code == .wrongKey && wrong?.status == 401)
    }

    @Test("A key source that is missing says so, without what may be a secret in the wrong place")
    func unavailable() throws {
        for source: KeySource in [
            .file("hunter2"), .environment("hunter2 and more"), .descriptor(9_999), .command("exit 3"),
            .command("kill -9 $$"), .credential("hunter2"), .credential("../hunter2"), .keyring("hunter2"),
        ] {
            let error = error(source)
            #expect(error?.code == .unavailable && error?.status == 400, "\(source)")
            #expect(error.map { "\($0)".contains("hunter2") } == false, "\(source)")
        }
        #expect(error(.environment("COFFER_NO_SUCH_KEY"))?.message.contains("COFFER_NO_SUCH_KEY") == true)
    }

    @Test("A source whose bytes are no key says so")
    func unusable() throws {
        #expect(try error(.file(file("empty", Data())))?.code == .unusable)
        #expect(try error(.file(file("short", Data(1...31)), as: .raw))?.code == .unusable)
        #expect(error(.command("cat /dev/zero"))?.code == .unusable)
    }

    @Test("A key command is told of the store and what its key is for, and of nothing when no store is meant")
    func request() throws {
        let line = "echo \"$COFFER_KEY_PURPOSE $COFFER_STORE_PATH $COFFER_STORE_UUID\""
        let uuid = try #require(UUID(uuidString: "0F4C0F4C-0000-4000-8000-00000000000A"))
        let told = try SymmetricKey(
            from: .command(line), for: KeyRequest(.new, storePath: "/a b/people.coffer", storeUUID: uuid))
        #expect(told == SymmetricKey(password: "new /a b/people.coffer 0f4c0f4c-0000-4000-8000-00000000000a"))
        #expect(try SymmetricKey(from: .command(line)) == SymmetricKey(password: "old  "))
    }
}
