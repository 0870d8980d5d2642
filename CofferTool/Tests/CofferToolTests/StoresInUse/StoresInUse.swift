import Coffer
import CofferMaintenance
import Foundation
import Synchronization
import Testing

/// A folder of stores that this process opens, beside the command, and keys in files.
final class StoresInUse: Sendable {
    let work: Workspace
    let manager: Manager
    /// Short enough for the address of a socket.
    let sockets = URL(filePath: "/tmp/ct-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
    static let keys = ["old": 0, "new": 32, "third": 64, "fourth": 96]

    init() throws {
        work = try Workspace()
        for (name, first) in Self.keys { try work.write(Data(Self.bytes(first)), to: name) }
        try work.write("password-of-robin", to: "password")
        manager = try Manager(
            directory: work.folder.appending(path: "stores", directoryHint: .isDirectory))
        try make("people")
    }

    deinit { try? FileManager.default.removeItem(at: sockets) }

    private static func bytes(_ first: Int) -> [UInt8] { (first..<first + 32).map { UInt8($0) } }

    static func key(_ name: String) throws -> SymmetricKey {
        try SymmetricKey(data: bytes(try #require(keys[name])))
    }

    /// Makes a store with 20 documents under the key `old`.
    func make(_ name: String) throws {
        let database = try open(name, creates: true)
        try database.inTransaction {
            for number in 0..<20 { try database.save(json: Data(#"{"n":\#(number)}"#.utf8), withID: "d\(number)") }
        }
        try database.close()
    }

    /// Puts that many documents into a store, so that a change of its key takes a while.
    func fill(_ name: String, _ count: Int) throws {
        let database = try open(name)
        try database.inTransaction {
            let text = String(repeating: "text ", count: 150)
            for number in 0..<count {
                try database.save(json: Data(#"{"text":"\#(text)"}"#.utf8), withID: "filled\(number)")
            }
        }
        try database.close()
    }

    func open(_ name: String, _ key: String = "old", creates: Bool = false) throws -> Database {
        var options = DatabaseOptions()
        options.create = creates
        options.encryptionKey = try Self.key(key)
        return try manager.openDatabase(named: name, options: options)
    }

    /// Whether that key opens a store that nobody has open.
    func opens(_ name: String, _ key: String) throws -> Bool {
        do {
            try open(name, key).close()
            return true
        } catch let error as CofferError where error.status == 401 {
            return false
        }
    }

    func accept() throws -> MaintenanceListener { try manager.acceptMaintenance(in: sockets) }

    var surroundings: CofferProcess.Surroundings {
        var surroundings = CofferProcess.Surroundings()
        surroundings.environment["COFFER_RUNTIME_DIR"] = sockets.path
        return surroundings
    }

    func run(_ arguments: [String], meanwhile: (pid_t) throws -> Void = { _ in }) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments, in: work.folder, surroundings, meanwhile: meanwhile)
    }
}

/// A thread that saves documents, one a transaction.
final class Writer: Sendable {
    private struct State {
        var count = 0
        var failure: (any Error)?
        var isEnding = false
        var hasEnded = false
    }

    private let database: Database
    private let state = Mutex(State())

    init(_ database: Database) {
        self.database = database
        let thread = Thread { [self] in
            while !state.withLock({ $0.isEnding }) {
                write(1)
                usleep(500)
            }
            state.withLock { $0.hasEnded = true }
        }
        thread.start()
    }

    func write(_ count: Int) {
        for _ in 0..<count {
            do {
                try database.createDocument().newRevision().save()
                state.withLock { $0.count += 1 }
            } catch {
                state.withLock { $0.failure = error }
            }
        }
    }

    /// How many documents were saved, none of which may have failed.
    func end() throws -> Int {
        state.withLock { $0.isEnding = true }
        try #require(eventually { state.withLock { $0.hasEnded } })
        return try state.withLock { state in
            if let failure = state.failure { throw failure }
            return state.count
        }
    }
}
