import CofferFaults
import CofferSealing
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferVault

/// A place where one thread is held while others go on.
final class Halt: Sendable {
    private let reached = Gate()
    private let released = Gate()
    private let isTaken = Atomic(false)

    /// Holds the first thread that comes here, until ``release()``.
    func hold() {
        guard !isTaken.exchange(true, ordering: .acquiringAndReleasing) else { return }
        reached.open()
        released.wait()
    }

    func waitUntilReached() -> Bool { reached.wait() }

    func release() { released.open() }
}

/// A call on a thread of its own.
final class Call<Value: Sendable>: Sendable {
    private let outcome = Lock<Result<Value, any Error>?>(nil)

    init(_ body: @escaping @Sendable () throws -> Value) {
        Thread { [self] in
            let result = Result { try body() }
            outcome.withLock { $0 = result }
        }.start()
    }

    var isOver: Bool { outcome.withLock { $0 != nil } }

    /// What it returned, once it has.
    @discardableResult
    func result() throws -> Value {
        try #require(eventually { isOver }, "a call never returned")
        return try #require(outcome.withLock { $0 }).get()
    }

    /// What it threw, once it has ended.
    var errorCode: CofferError.Code? { thrown { try result() }?.code }

    /// Whether it comes to wait for `lock`, and neither ends before nor comes so far that `isBeyond` holds.
    func waits(for lock: WriterLock, unless isBeyond: () -> Bool = { false }) -> Bool {
        _ = eventually { isOver || isBeyond() || lock.isWaitedFor }
        return !isOver && !isBeyond()
    }

    /// Whether it ends while another thread is held, which may take some time on a busy machine.
    var ends: Bool {
        for _ in 0..<10_000 where !isOver { Thread.sleep(forTimeInterval: 0.002) }
        return isOver
    }

    /// Whether it has not ended a moment after it could have.
    var isHeldUp: Bool {
        for _ in 0..<100 where !isOver { Thread.sleep(forTimeInterval: 0.002) }
        return !isOver
    }
}

/// A store with work due, whose automatic actors can be stopped in the middle.
final class WorkedStore: Sendable {
    /// Where an actor is stopped.
    enum Place: String, CaseIterable, Sendable {
        /// A compaction between two of its transactions.
        case compactionBetweenSteps
        /// A compaction in a transaction that makes the file shorter.
        case compactionWithinStep
        /// A compaction that has removed the first of several contents.
        case removingContents
        /// A compaction that has removed the first of several files without rows.
        case removingFilesWithoutRows
        /// The expiration timer, before it takes its turn to write.
        case expirationReading
        /// The expiration timer in its transaction.
        case expirationPurging

        static let compactions: [Place] = [
            .compactionBetweenSteps, .compactionWithinStep, .removingContents, .removingFilesWithoutRows,
        ]
        static let expirations: [Place] = [.expirationReading, .expirationPurging]

        /// Whether the one that is stopped there has the writer's lock.
        var holdsWriter: Bool { self != .compactionBetweenSteps && self != .expirationReading }

        fileprivate var sql: String? {
            switch self {
            case .compactionBetweenSteps: "SELECT number FROM attachments AS a"
            case .compactionWithinStep: "PRAGMA incremental_vacuum(512)"
            case .removingContents, .removingFilesWithoutRows: nil
            case .expirationReading: "SELECT i.time"
            case .expirationPurging: "SELECT i.id\nFROM expirations"
            }
        }
    }

    let stores: TestStores
    let place: Place
    let halt: Halt
    private let isArmed: Shared<Bool>
    private let interruption = Lock<DatabaseCalls.Interruption?>(nil)

    static let keptIDs = (0..<40).map { "kept\($0)" }
    static let expiringIDs = (0..<5).map { "expiring\($0)" }
    /// Contents that no revision uses any more.
    static let unusedCount = 3

    /// - Parameter path: the directory of another test, seen from a process of its own; nil for one of its own.
    init(_ place: Place, sharing path: String? = nil) {
        let (halt, isArmed) = (Halt(), Shared(false))
        self.halt = halt
        self.place = place
        self.isArmed = isArmed
        let fileSystem = RecordingFileSystem(afterStep: { _, name in
            if isArmed.value, name.hasPrefix("unlink "), name.hasSuffix(".blob") { halt.hold() }
        })
        stores = path.map { TestStores(sharing: $0, fileSystem: fileSystem) } ?? TestStores(fileSystem: fileSystem)
    }

    deinit { halt.release() }

    func open(
        key: SymmetricKey? = TestStores.key, _ change: (inout DatabaseOptions) -> Void = { _ in }
    ) throws -> Database {
        try stores.open(key: key) {
            $0.durability = .relaxed
            $0.compactsInBackground = false
            change(&$0)
        }
    }

    /// Creates the store, with all that the actor has to do.
    func create() throws -> Database {
        let database = try open()
        try database.inTransaction {
            for id in Self.keptIDs + Self.expiringIDs {
                let draft = try database.document(withID: id).newRevision()
                (draft["n"], draft["t"]) = (1, .string(String(repeating: "text ", count: 600)))
                if id == "kept0" { draft.setAttachment(named: "a", contentType: nil, content: Data("kept".utf8)) }
                try draft.save()
                (draft["n"], draft["t"]) = (2, "")
                try draft.save()
            }
        }
        try saveAndPurgeContents(in: database)
        if place == .removingFilesWithoutRows {
            let files = try FileManager.default.contentsOfDirectory(atPath: attachments().path)
            try database.compact()
            for name in files { try Data("stray".utf8).writeUnlessThere(attachments().appending(path: name)) }
        }
        return database
    }

    private func saveAndPurgeContents(in database: Database) throws {
        for number in 0..<Self.unusedCount { try save(content: number, in: database) }
        for number in 0..<Self.unusedCount { try database.document(withID: "content\(number)").purge() }
    }

    /// Saves a document with one of the contents that are to be removed.
    func save(content number: Int, in database: Database) throws {
        let draft = try database.document(withID: "content\(number)").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Self.content(number))
        try draft.save()
    }

    static func content(_ number: Int) -> Data { Data("content \(number)".utf8) }

    func attachments() throws -> URL { try stores.generation().appending(path: "attachments") }

    /// How many files of contents are there.
    func fileCount() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: attachments().path).count }

    /// Has the actor begin, and waits until it is stopped.
    func begin(_ storage: Storage) throws {
        arm()
        guard Place.expirations.contains(place) else {
            storage.backgroundCompaction.schedule(storage)
            try #require(halt.waitUntilReached())
            return
        }
        try expire(storage)
        // Whoever commits notifies the timer, and is not to wait for what that does.
        let call = Call { [weak storage] in if let storage { storage.expirationTimer.reconsider(storage) } }
        try #require(halt.waitUntilReached())
        try #require(call.ends)
    }

    /// Stops the actor as soon as it comes to its place.
    func arm() {
        isArmed.value = true
        guard let sql = place.sql else { return }
        let halt = halt
        let interruption = DatabaseCalls.interrupt(before: sql, below: stores.directory) {
            halt.hold()
            return nil
        }
        self.interruption.withLock { $0 = interruption }
    }

    /// Has documents expire, which the timer isn't notified of.
    func expire(_ storage: Storage) throws {
        try storage.write { (writer) throws(CofferError) in
            try writer.change { () throws(CofferError) in
                for id in Self.expiringIDs { try writer.tables.expirations.set(.init(id), 1_000) }
            }
        }
    }

    /// Waits until all that was due is done.
    func waitUntilDone(_ database: Database) throws -> Bool {
        try eventually {
            switch place {
            case .compactionBetweenSteps, .compactionWithinStep, .removingContents, .removingFilesWithoutRows:
                try database.storage.alone { (writer) throws(CofferError) in try writer.records.compaction.pages() }
                    .free == 0
                    && fileCount() == 1
            case .expirationReading, .expirationPurging:
                try Self.expiringIDs.allSatisfy { try database[$0] == nil }
            }
        }
    }

    func check(_ database: Database, _ location: SourceLocation = #_sourceLocation) throws {
        try Self.check(database, location)
    }

    /// Expects that the store is sound, and holds what was acknowledged.
    static func check(_ database: Database, _ location: SourceLocation = #_sourceLocation) throws {
        #expect(try database.verify().findings == [], sourceLocation: location)
        for id in keptIDs { #expect(try database[id]?["n"] == 2, sourceLocation: location) }
        #expect(
            try database["kept0"]?.currentRevision?.attachment(named: "a")?.content == Data("kept".utf8),
            sourceLocation: location)
    }
}

extension Data {
    fileprivate func writeUnlessThere(_ url: URL) throws {
        if !FileManager.default.fileExists(atPath: url.path) { try write(to: url) }
    }
}
