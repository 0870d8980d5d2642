import Foundation
import Synchronization

/// What a worker may choose to have the tool do.
enum ToolSoakAction: Sendable {
    // Writing.
    case put, attach, detach, remove, importRecords, refuse, importFiles
    // Reading.
    case get, cat, list, query, changes, log, export, info, check
    // What concerns the store as a whole.
    case index, compact, backup, rekey, rotate, keys

    /// The frequent ones several times.
    static let choices: [ToolSoakAction] = [
        .put, .put, .put, .put, .put, .attach, .attach, .attach, .attach, .attach, .attach, .detach, .detach, .remove,
        .remove, .remove, .importRecords, .importRecords, .refuse, .importFiles, .get, .get, .get, .cat, .cat, .list,
        .query, .query, .changes, .log, .export, .info, .check, .index, .index, .compact, .backup, .rekey, .rotate,
        .keys, .keys,
    ]
}

/// Runs one command after another, and knows what must be there of it: only it writes documents whose ids begin with its
/// name.
///
/// Unchecked, since it works on one thread at a time, and is looked at in between.
final class ToolSoakWorker: @unchecked Sendable {
    let number: Int
    var model = ToolSoakModel()
    /// A key of its own that it has added.
    private var ownKeyID: String?
    /// Numbers of bodies and of large contents, unique in the store.
    private var lastNumber = 0
    private var actionCount = 0

    init(_ number: Int) { self.number = number }

    var name: String { "w\(number)" }
    var prefix: String { "\(name)-" }

    private func nextNumber() -> Int {
        lastNumber += 1
        return ToolSoakContent.sharedCount + lastNumber * 10 + number
    }

    /// What it draws from follows from the number of the action, and not from what others drew.
    func act(_ store: ToolSoakStore) throws {
        actionCount += 1
        var random = SeededNumbers(seed: store.run.seed, store.number, number, actionCount)
        if random.isOne(in: 2) { try store.owe(by: name) }
        switch random.pick(ToolSoakAction.choices) ?? .put {
        case .put: try put(store, &random)
        case .attach: try attach(store, &random)
        case .detach:
            guard let (id, attachment, _) = random.pick(model.attachments) else { return }
            if try command(store, "rm", [id, attachment]) != nil { model.noteDetached(id, attachment) }
        case .remove:
            guard let id = random.pick(model.lasting) else { return }
            if try command(store, "rm", [id]) != nil { model.noteGone(id) }
        case .importRecords: try importRecords(store, &random)
        case .refuse: try refuse(store, &random)
        case .importFiles: try importFiles(store, &random)
        case .index: try index(store, &random)
        case .compact: _ = try command(store, "compact", [])
        case .backup: try backup(store)
        case .rekey: try rekey(store)
        case .rotate: try rotate(store)
        case .keys: try changeKeys(store)
        case let action: try read(action, store, &random)
        }
    }

    /// - Returns: nil where the store was in use, and nothing was done.
    func command(
        _ store: ToolSoakStore, _ words: String, _ rest: [String], input: Data = Data(), refusals: Set<String> = []
    ) throws -> CofferProcess.Outcome? {
        try store.command(
            words.split(separator: " ").map(String.init), rest, by: name, input: input, refusals: refusals)
    }

    /// A path that only this worker uses.
    func scratch(_ store: ToolSoakStore, _ file: String) -> URL {
        store.run.scratch("\(store.kind.rawValue)-\(name)-\(file)")
    }

    // MARK: Writing

    /// An id of few, so that documents come and go; nil where all of them will expire.
    private func freeID(_ random: inout SeededNumbers) -> String? {
        random.pick((0..<12).map { "\(prefix)\($0)" }.filter { model[$0]?.expiration == nil })
    }

    private func put(_ store: ToolSoakStore, _ random: inout SeededNumbers) throws {
        let known = random.isOne(in: 2) ? random.pick(model.lasting) : nil
        guard let id = known ?? freeID(&random) else { return }
        let number = nextNumber()
        let json = Data(ToolSoakDocument.json(number, owner: name).utf8)
        if try command(store, "put", [id], input: json) != nil { model.notePut(id, number) }
    }

    private func attach(_ store: ToolSoakStore, _ random: inout SeededNumbers) throws {
        guard let id = freeID(&random) else { return }
        let attachment = "file \(random.below(2))"
        let content = random.isOne(in: 3) ? nextNumber() : random.below(ToolSoakContent.sharedCount)
        let bytes = ToolSoakContent.bytes(content)
        let isPiped = random.isOne(in: 2)
        let file = scratch(store, "content")
        if !isPiped { try bytes.write(to: file) }
        let path = isPiped ? "-" : file.path(percentEncoded: false)
        if try command(store, "attach", [id, attachment, path], input: isPiped ? bytes : Data()) != nil {
            model.noteAttached(id, attachment, content)
        }
    }

    // MARK: Importing

    /// Few documents or many. Their ids are new, or of documents that were removed.
    private func importRecords(_ store: ToolSoakStore, _ random: inout SeededNumbers) throws {
        let batch = nextNumber()
        let count = model.documentCount > 2_000 ? 2 : random.pick([3, 20, 60, 500]) ?? 3
        var ids = (0..<count).map { "\(prefix)\(batch)-\($0)" }
        if let id = freeID(&random), model[id] == nil { ids.append(id) }
        let numbered = ids.map { (id: $0, number: nextNumber()) }
        guard let outcome = try importRecords(numbered, store) else { return }
        try toolSoakExpect(
            try outcome.objects.last?["documents"] as? Int == ids.count, "import says \(outcome.output)")
        for (id, number) in numbered { model.notePut(id, number) }
    }

    private func importRecords(
        _ records: [(id: String, number: Int)], _ store: ToolSoakStore, refusals: Set<String> = []
    ) throws -> CofferProcess.Outcome? {
        let lines = records.map { ToolSoakDocument.json($0.number, owner: name, id: $0.id) }
        let file = scratch(store, "records.ndjson")
        try Data(lines.joined(separator: "\n").utf8).write(to: file)
        return try command(store, "import", [file.path(percentEncoded: false)], refusals: refusals)
    }

    /// An import in which one document is there already: nothing of it stays.
    private func refuse(_ store: ToolSoakStore, _ random: inout SeededNumbers) throws {
        guard let id = random.pick(model.lasting) else { return }
        let batch = nextNumber()
        let records = [("\(prefix)\(batch)-new", batch), (id, nextNumber())]
        guard let outcome = try importRecords(records, store, refusals: ["conflict"]) else { return }
        try toolSoakExpect(outcome.status != ToolSoakStatus.done, "an import went over \(id), which is there")
    }

    /// Files as documents of their own.
    private func importFiles(_ store: ToolSoakStore, _ random: inout SeededNumbers) throws {
        let folder = scratch(store, "files")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let names = (0..<4).map { "\(prefix)file\($0)" }.filter { model[$0] == nil }
        let contents = names.prefix(1 + random.below(3)).map { (name: $0, content: random.below(2) + 5) }
        guard !contents.isEmpty else { return }
        for (name, content) in contents { try ToolSoakContent.bytes(content).write(to: folder.appending(path: name)) }
        if try command(store, "import", [folder.path(percentEncoded: false), "--attach"]) != nil {
            for (name, content) in contents { model.noteAttached(name, name, content) }
        }
    }

    // MARK: The store as a whole

    private func index(_ store: ToolSoakStore, _ random: inout SeededNumbers) throws {
        switch random.below(3) {
        case 0: _ = try command(store, "index remove", ["by owner"], refusals: ["indexNotFound"])
        case 1: _ = try command(store, "index update", [])
        default: _ = try command(store, "index add", ["by owner", "owner", "n"])
        }
    }

    /// Makes a backup, which is sound and holds what this worker owns, and removes it again.
    private func backup(_ store: ToolSoakStore) throws {
        let path = "copies/\(store.name)-\(name).coffer"
        defer { try? FileManager.default.removeItem(at: store.run.work.folder.appending(path: path)) }
        guard try command(store, "backup", [path, "--unencrypted"]) != nil else { return }
        let file = scratch(store, "backup.ndjson")
        defer { try? FileManager.default.removeItem(at: file) }
        let actor = "\(store.kind.rawValue) \(name)"
        for arguments in [["check", path], ["export", path, file.path(percentEncoded: false)]] {
            try store.judge(store.run.coffer(arguments, by: actor, store.trail), actor, arguments)
        }
        var copy = model
        try copy.compare(try ToolSoakStore.objects(in: file).filter { $0.key.hasPrefix(prefix) })
    }

    // MARK: Keys

    /// Adds a key, or removes it again. A key change drops it too.
    private func changeKeys(_ store: ToolSoakStore) throws {
        guard store.isEncrypted else { return ownKeyID = nil }
        if let id = ownKeyID {
            if try command(store, "key remove", [id], refusals: ["invalidArgument"]) != nil { ownKeyID = nil }
        } else {
            let file = "keys/\(store.kind.rawValue)-\(name)"
            let key = Data(repeating: UInt8(128 + number), count: 31) + [UInt8(store.number)]
            try store.run.work.write(key, to: file)
            let outcome = try command(store, "key add", ["--new-key", "raw+file:\(file)", "--label", name])
            ownKeyID = try outcome?.objects.last?["id"] as? String
        }
    }

    /// Encrypts everything again, under keys that are as they were.
    private func rekey(_ store: ToolSoakStore) throws {
        try store.run.ring.withLock { ring in
            guard let number = ring.ofStores[store.name] else { return }
            let kept = ["--keep-key", try ToolSoakRing.source(number, store.run), "--drop-other-keys"]
            _ = try command(store, "rekey", ["--new-key", ToolSoakStore.mainKey] + kept)
        }
    }

    /// Rotates the ring's key of all stores. Those that are in use are left out, and rotated by the next run.
    private func rotate(_ store: ToolSoakStore) throws {
        let run = store.run
        try run.ring.withLock { ring in
            let new = ring.number + 1
            let keys = [
                "--key", try ToolSoakRing.source(ring.number, run), "--new-key", try ToolSoakRing.source(new, run),
                "--keep-key", ToolSoakStore.mainKey, "--drop-other-keys",
            ]
            let arguments = ["rotate", "stores", "--keep-going", "--jobs", "2"] + keys
            let outcome = try run.coffer(arguments, by: "\(store.kind.rawValue) \(name)", store.trail)
            let receipts = ((try? outcome.objects) ?? []).filter { $0["type"] as? String == "receipt" }
            let ended = "rotate ended with status \(outcome.status): \(outcome.output)\n\(outcome.errors)"
            try toolSoakExpect([0, 3, 11, 12].contains(outcome.status) && !receipts.isEmpty, ended)
            for receipt in receipts {
                let path = receipt["path"] as? String ?? ""
                let name = String(path.dropFirst("stores/".count).dropLast(".coffer".count))
                let isDue = ring.ofStores[name] == ring.number
                let code = receipt["code"] as? String
                switch receipt["outcome"] as? String {
                case "rotated" where isDue:
                    ring.ofStores[name] = new
                    run.count("rotated store")
                case "alreadyRotated", "notAsAsked":
                    // Workers add keys of their own, which nobody asked to keep.
                    try toolSoakExpect(ring.ofStores[name] == new, ended)
                case "failed" where code == "busy": break
                case "failed" where code == "notEncrypted" && ring.ofStores[name] == nil: break
                default: throw ToolSoakMismatch("\(name), of \(String(describing: ring.ofStores[name])): \(ended)")
                }
            }
            if ring.ofStores.values.allSatisfy({ $0 == new }) { ring.number = new }
        }
    }
}
