import Foundation

extension ToolSoakStore {
    // MARK: Checking

    /// Has the tool check every byte of the store.
    func check() throws {
        let result = try insist(["check"]).objects.last
        try toolSoakExpect(result?["sound"] as? Bool == true, "check says \(String(describing: result))")
    }

    // MARK: Comparing

    private static let keeperID = "keeper"

    private func exported(_ name: String = "export") -> (lines: String, contents: String) {
        ("scratch/\(kind.rawValue)-\(name).ndjson", "scratch/\(kind.rawValue)-\(name)")
    }

    private func removeExported(_ name: String = "export") {
        for path in [exported(name).lines, exported(name).contents] {
            try? FileManager.default.removeItem(at: run.work.folder.appending(path: path))
        }
    }

    /// Compares all of the store with what the workers know, while none of them runs.
    ///
    /// - Returns: whether nothing is about to expire.
    func compare() throws -> Bool {
        // It opens the store for writing, so that whatever expired before it is gone after it.
        let openedAt = Date()
        try insist(["put"], [Self.keeperID], input: Data(ToolSoakDocument.json(0, owner: Self.keeperID).utf8))
        defer { removeExported() }
        let files = exported()
        try insist(["export"], [files.lines, "--attachments", files.contents])
        var owned = try Self.objects(in: run.work.folder.appending(path: files.lines))
        try toolSoakExpect(owned.removeValue(forKey: Self.keeperID) != nil, "the keeper's document is missing")
        for worker in workers {
            let own = owned.filter { $0.key.hasPrefix(worker.prefix) }
            try worker.model.compare(own, openedAt: openedAt)
            try compareContents(own, worker.model, in: files.contents)
            for id in own.keys { owned[id] = nil }
        }
        // The document of a debt is among them if it is there: it had expired.
        try toolSoakExpect(owned.isEmpty, "there is \(owned.keys.sorted().prefix(20)), which nobody made")
        run.count("comparison")
        return workers.allSatisfy { $0.model.lasting.count == $0.model.documentCount }
    }

    /// The documents of an export, by their ids, whose order is checked.
    static func objects(in file: URL) throws -> [String: [String: Any]] {
        var objects: [String: [String: Any]] = [:]
        var last: String?
        for line in try Data(contentsOf: file).split(separator: UInt8(ascii: "\n")) {
            guard let object = try JSONSerialization.jsonObject(with: line) as? [String: Any],
                let id = object["_id"] as? String
            else { throw ToolSoakMismatch("an export has a line without an id") }
            if let last { try toolSoakExpect(last < id, "an export has \(id) after \(last)") }
            last = id
            objects[id] = object
        }
        return objects
    }

    /// Compares every byte of the attachments.
    private func compareContents(_ found: [String: [String: Any]], _ model: ToolSoakModel, in folder: String) throws {
        var files: [Int: String] = [:]
        for (id, object) in found {
            let stubs = object["_attachments"] as? [String: [String: Any]] ?? [:]
            for (name, number) in model[id]?.attachments ?? [:] {
                guard let digest = stubs[name]?["digest"] as? String,
                    let bytes = Data(base64Encoded: String(digest.dropFirst("sha1-".count)))
                else { throw ToolSoakMismatch("\(id): attachment \(name) has no digest") }
                let file = bytes.map { String(format: "%02x", $0) }.joined() + ".blob"
                if let known = files[number] {
                    try toolSoakExpect(known == file, "\(id): the digest of \(name) is not that of content \(number)")
                    continue
                }
                files[number] = file
                let content = try Data(contentsOf: run.work.folder.appending(path: folder + "/" + file))
                try toolSoakExpect(
                    content == ToolSoakContent.bytes(number), "\(id): attachment \(name) has not content \(number)")
            }
        }
    }

    // MARK: Copies

    /// Makes a store of an export, a backup or what can be salvaged, which is sound, and the same as the store where nothing
    /// expires.
    func copy(_ random: inout SeededNumbers, isExact: Bool) throws {
        let copy = "copies/\(name).coffer"
        defer {
            try? FileManager.default.removeItem(at: run.work.folder.appending(path: copy))
            removeExported()
            removeExported("copy")
        }
        let files = exported()
        try insist(["export"], [files.lines, "--attachments", files.contents])
        let actor = "\(kind.rawValue) keeper"
        func other(_ arguments: [String]) throws {
            try judge(run.coffer(arguments, by: actor, trail), actor, arguments)
        }
        var key: [String] = []
        switch random.below(3) {
        case 0:
            try other(["create", copy, "--unencrypted"])
            try other(["import", copy, files.lines, "--attachments", files.contents])
        case 1:
            try insist(["backup"], [copy, "--unencrypted"])
        default:
            try insist(["salvage"], [copy])
            key = keyArguments
        }
        let again = exported("copy")
        try other(["check", copy] + key)
        try other(["export", copy, again.lines, "--attachments", again.contents] + key)
        guard isExact else { return }
        let (left, right) = (run.work.folder.appending(path: files.lines), run.work.folder.appending(path: again.lines))
        try toolSoakExpect(
            try Data(contentsOf: left) == Data(contentsOf: right), "the copy has other documents than the store")
        run.count("copy")
    }
}
