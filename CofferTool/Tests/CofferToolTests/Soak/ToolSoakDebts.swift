import Foundation

@testable import Coffer
@testable import CofferRecords

// Work that the next command finds due as it opens the store. Commands alone would need many large attachments for a
// compaction, and can't have documents expire.

extension ToolSoakStore {
    /// Opens the store in this process, and has nothing done to it that isn't asked for.
    ///
    /// - Throws: ``CofferError``, `busy` (503) where commands use it for longer than `timeout`.
    private func open<Value>(
        as actor: String, waiting timeout: Duration, _ body: (Database) throws -> Value
    ) throws -> Value {
        var options = DatabaseOptions()
        options.encryptionKey = isEncrypted ? try SymmetricKey(data: ToolSoakRun.mainKey) : nil
        options.compactsInBackground = false
        options.lockTimeout = timeout
        let actor = "\(kind.rawValue) \(actor)"
        run.note(actor, "open \(name) in this process")
        defer { run.note(actor, nil) }
        let manager = try Manager(directory: url.deletingLastPathComponent())
        let database = try manager.openDatabase(named: name, options: options)
        let value = try body(database)
        try database.close()
        return value
    }

    /// The document that has expired where something is due. Whoever opens the store for writing purges it.
    static let debtID = "debt"

    /// Has the store look as if much could be given back, and a document in it expire, unless a command uses the store.
    /// Another worker that opened it in this process may close it meanwhile.
    ///
    /// The compaction and the purge belong together: the purge ends when the compaction waits for its turn.
    func owe(by actor: String) throws {
        do {
            try open(as: actor, waiting: .zero) { database in
                try database.inTransaction {
                    let isThere = try database.document(withID: Self.debtID).currentRevision != nil
                    if !isThere { try database.save(json: Data("{}".utf8), withID: Self.debtID) }
                }
                let debt = try database.document(withID: Self.debtID).checkedID
                try database.storage.write { (writer) throws(CofferError) in
                    try writer.change { () throws(CofferError) in
                        try writer.records.compaction.note(reclaimable: 64 << 20)
                        try writer.tables.expirations.set(debt, 1_000)
                    }
                }
            }
        } catch let error as CofferError where [.busy, .closed].contains(error.code) {
            return
        }
        trail.note("\(kind.rawValue) \(actor): a compaction and a purge are due")
        run.count("due compaction")
    }

    /// Has some documents expire soon.
    func setExpirations(_ random: inout SeededNumbers) throws {
        try open(as: "keeper", waiting: .seconds(60)) { database in
            for worker in workers {
                for _ in 0..<random.below(4) {
                    guard let id = random.pick(worker.model.lasting) else { break }
                    let date = Date(timeIntervalSinceNow: Double(random.below(3_000)) / 1_000)
                    try database.document(withID: id).setExpirationDate(date)
                    worker.model.noteExpiration(of: id, date)
                    trail.note("\(id) expires at \(date.timeIntervalSince1970)")
                    run.count("expiration")
                }
            }
        }
    }
}
