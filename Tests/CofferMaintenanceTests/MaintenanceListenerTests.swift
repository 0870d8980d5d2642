import Coffer
import CofferTesting
import Foundation
import Testing

@_spi(Tool) @testable import CofferMaintenance

@Suite("What listens for maintenance")
struct MaintenanceListenerTests {
    private let key = SymmetricKey(password: "app")

    @Test("Each directory has one maintenance socket until it is stopped; dead ones go when another begins")
    func sockets() throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", key)
        let listener = try fixture.listen()
        #expect(try fixture.listen() === listener)
        let names = fixture.socketNames
        #expect(names.count == 1)
        // As a process leaves it that was killed.
        let parts = names[0].split(separator: "-")
        let dead = "\(fixture.runtimeDirectory.path)/\(parts[0])-\(parts[1])-4194305-0.socket"
        _ = try UnixSocket.listening(at: dead)
        #expect(fixture.socketNames.count == 2)
        listener.stop()
        listener.stop()
        #expect(fixture.socketNames.count == 1, "the other is nobody's")
        #expect(try fixture.find("notes", key) == nil)
        let second = try fixture.listen()
        defer { second.stop() }
        #expect(second !== listener && fixture.socketNames.count == 1)
        #expect(try fixture.find("notes", key) != nil)
        // As a system does that clears its temporary files up.
        try FileManager.default.removeItem(atPath: "\(fixture.runtimeDirectory.path)/\(fixture.socketNames[0])")
        #expect(try fixture.find("notes", key) == nil)
        let third = try fixture.listen()
        defer { third.stop() }
        #expect(try fixture.find("notes", key) != nil)
        _ = database
    }

    @Test("A directory for sockets that others may look into, or that is something else, is refused (403)")
    func openDirectory() throws {
        let fixture = Fixture()
        try fixture.runtimeDirectory.make()
        let path = fixture.runtimeDirectory.path
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        #expect(throws: CofferError(.notOwner)) { try fixture.listen() }
        #expect(fixture.runtimeDirectory.socketPaths(forStoresIn: try FileIdentity(ofDirectoryAt: "/")).isEmpty)
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/tmp")
        #expect(throws: CofferError(.notOwner)) { try fixture.listen() }
        try FileManager.default.removeItem(atPath: path)
        try Data().write(to: URL(filePath: path))
        #expect(throws: CofferError(.notOwner)) { try fixture.listen() }
    }

    @Test("A path with no room for a socket's name is a 400")
    func longPath() throws {
        let fixture = Fixture()
        let long = RuntimeDirectory(path: fixture.stores.directory.path + "/" + String(repeating: "a", count: 100))
        #expect(throws: CofferError(.invalidArgument)) { try fixture.stores.manager.acceptMaintenance(in: long) }
    }

    @Test("The environment names the directory for sockets, otherwise it is the system's or the temporary files'")
    func directories() {
        func paths(_ environment: [String: String]) -> [String] {
            RuntimeDirectory.candidates(environment: environment).map(\.path)
        }
        #expect(paths(["COFFER_RUNTIME_DIR": "/x/y/"]) == ["/x/y"])
        let usual = paths([:])
        #expect(usual.last == "/tmp/coffer-\(getuid())")
        #expect(usual.count == 1 || usual[0] == "/run/user/\(getuid())/coffer")
        #expect(paths(["COFFER_RUNTIME_DIR": "relative"]) == usual)
    }

    @Test("Whatever comes through the maintenance socket, the process and its database go on")
    func hostileFrames() throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", key)
        let listener = try fixture.listen()
        defer { listener.stop() }
        let greeting = try JSONEncoder().encode(fixture.hello())
        let hello = frame(1, greeting)
        let request = try JSONEncoder().encode(MaintenanceRequest.compact)
        let inputs: [[UInt8]] = [
            [], [0], [1, 0, 0, 0], [255, 0, 0, 0, 0], [1, 255, 255, 255, 255], frame(1, Data()),
            frame(1, Data("{}".utf8)),
            frame(3, request), frame(4, Data()), frame(2, Data()), frame(21, greeting), hello + hello,
            hello + frame(3, request), hello + frame(4, Data()), hello + frame(2, Data([0, 1, 2, 3])),
            hello + frame(2, Data([7] + Array(repeating: 1, count: 32))), hello + frame(2, Data([1])),
            hello + [2, 255, 255, 255, 0], hello + frame(2, Data([1, 0, 0])),
            hello + frame(2, Data([1, 0xFF, 0xFE])), Array(repeating: 1, count: 100_000),
            frame(
                1,
                Data(String(decoding: greeting, as: UTF8.self).replacing(#""version":1"#, with: #""version":2"#).utf8)),
        ]
        for input in inputs {
            let channel = try fixture.connect()
            _ = unsafe input.withUnsafeBytes { unsafe channel.socket.write($0) }
            let end = ContinuousClock.now + .seconds(1)
            // Whatever it says, it never takes such a thing for a key, or for leave to do something.
            var kinds: [Frame.Kind] = []
            while kinds.count < 10,
                let frame = try? channel.receive(maximumByteCount: 65_536, while: { ContinuousClock.now < end })
            {
                kinds.append(frame.kind)
            }
            #expect(!kinds.contains(.result), "\(input.prefix(8))")
        }
        #expect(try database.documentCount == 0)
        #expect(try fixture.find("notes", key) != nil)
    }

    @Test("Senseless requests after a proven key are refused and change nothing")
    func hostileRequests() async throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", key)
        let listener = try fixture.listen()
        defer { listener.stop() }
        let requests: [MaintenanceRequest] = [
            .addKey(label: nil), .replaceKey(nil, label: nil), .changeKey(dropsOtherKeys: true, keyedNames: nil),
            .removeKey("nonsense"), .setMaximumDepth(0), .setMaximumDepth(-1),
            .readContent(digest: "nonsense", byteCount: -1),
            .backUp(.init(folder: "/", folderIdentity: try FileIdentity(ofDirectoryAt: "/tmp"), fileName: "x.coffer")),
            .backUp(.init(folder: "/nowhere", folderIdentity: try FileIdentity(ofDirectoryAt: "/tmp"), fileName: "x")),
            .backUp(
                .init(folder: "/tmp", folderIdentity: try FileIdentity(ofDirectoryAt: "/tmp"), fileName: "../x.coffer")),
        ]
        try await onThread { [key] in
            let channel = try fixture.connect()
            try channel.send(.hello, fixture.hello())
            #expect(try channel.receive(maximumByteCount: 1000).kind == .welcome)
            try channel.send(key)
            #expect(try channel.receive(maximumByteCount: 1000).kind == .result)
            for request in requests {
                try channel.send(.request, request)
                #expect(try channel.receive(maximumByteCount: 65_536).kind == .failure, "\(request)")
            }
            #expect(try database.keys.count == 1)
            for _ in 0..<17 { try? channel.send(key) }
            try? channel.send(.request, MaintenanceRequest.count)
            #expect((try? channel.receive(maximumByteCount: 1000).kind) != .result, "more keys than a store can have")
        }
    }

    @Test("A key change is cancelled when the process that asked for it dies")
    func deathOfTheOtherSide() async throws {
        let fixture = Fixture()
        // What waits for its turn gives up much later than this test does.
        let database = try fixture.create("notes", key, busyTimeout: .seconds(600))
        let listener = try fixture.listen()
        defer { listener.stop() }
        let (hasBegun, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        // No change of the key is made while a transaction is open.
        async let transaction: Void = onThread {
            try database.inTransaction {
                try database.createDocument().newRevision().save()
                hasBegun.signal()
                mayEnd.wait()
            }
        }
        try await onThread { hasBegun.wait() }
        let channel = try fixture.connect()
        try channel.send(.hello, fixture.hello())
        #expect(try channel.receive(maximumByteCount: 1000).kind == .welcome)
        try channel.send(key)
        #expect(try channel.receive(maximumByteCount: 1000).kind == .result)
        try channel.send(SymmetricKey(password: "next"))
        try channel.send(.request, MaintenanceRequest.changeKey(dropsOtherKeys: false, keyedNames: nil))
        #expect(listener.connectionCount == 1)
        channel.socket.shutDown()
        // It ends as soon as the other side has; it does not wait for the transaction.
        let end = ContinuousClock.now + .seconds(30)
        while listener.connectionCount > 0, ContinuousClock.now < end { try await Task.sleep(for: .milliseconds(5)) }
        #expect(listener.connectionCount == 0)
        mayEnd.signal()
        try await transaction
        #expect(try fixture.find("notes", key)?.describe().keys.count == 1)
        #expect(database.generation == 1)
        try await database.close()
    }

    @Test("No more than 256 maintenance connections are served at a time, and others again when they have ended")
    func connectionLimit() throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", nil)
        let listener = try fixture.listen()
        defer { listener.stop() }
        var connections = try (0..<MaintenanceListener.maximumConnectionCount).map { _ in
            try #require(try fixture.find("notes", nil))
        }
        #expect(try fixture.find("notes", nil) == nil)
        #expect(try connections[255].count().documentCount == 0)
        connections.removeAll()
        let start = ContinuousClock.now
        while try fixture.find("notes", nil) == nil, .now - start < .seconds(20) { usleep(10_000) }
        #expect(try fixture.find("notes", nil) != nil)
        _ = database
    }

    private func frame(_ kind: UInt8, _ payload: Data) -> [UInt8] {
        [kind] + (0..<4).map { UInt8(truncatingIfNeeded: payload.count >> (8 * $0)) } + payload
    }
}
