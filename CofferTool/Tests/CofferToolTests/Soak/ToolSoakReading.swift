import Foundation

extension ToolSoakWorker {
    /// Reads what it owns in one of several ways, and compares it with the model.
    func read(_ action: ToolSoakAction, _ store: ToolSoakStore, _ random: inout SeededNumbers) throws {
        switch action {
        case .get: try get(store, &random)
        case .cat:
            guard let (id, attachment, content) = random.pick(model.attachments) else { return }
            guard let outcome = try command(store, "cat", [id, attachment]) else { return }
            try toolSoakExpect(
                outcome.outputBytes == ToolSoakContent.bytes(content), "cat: \(id), \(attachment) has not \(content)")
        case .list:
            guard let rows = try command(store, "ls", [])?.objects else { return }
            try model.compare(ids: own(rows), by: "ls")
        case .changes:
            guard let rows = try command(store, "changes", [])?.objects else { return }
            let live = rows.filter { $0["deleted"] as? Bool == false }
            try model.compare(ids: own(live), by: "changes")
        case .query: try query(store, &random)
        case .log:
            guard let id = random.pick(model.lasting) else { return }
            guard let rows = try command(store, "log", [id])?.objects else { return }
            let current = rows.filter { $0["current"] as? Bool == true }
            try toolSoakExpect(
                current.count == 1 && current[0]["deleted"] as? Bool == false, "log of \(id) says \(rows)")
        case .export:
            let file = scratch(store, "export.ndjson")
            defer { try? FileManager.default.removeItem(at: file) }
            guard try command(store, "export", [file.path(percentEncoded: false)]) != nil else { return }
            try model.compare(try ToolSoakStore.objects(in: file).filter { $0.key.hasPrefix(prefix) })
        case .info: try info(store, &random)
        default:
            guard let result = try command(store, "check", [])?.objects.last else { return }
            try toolSoakExpect(result["sound"] as? Bool == true, "check says \(result)")
        }
    }

    /// The ids of its own documents among those that a command listed.
    private func own(_ rows: [[String: Any]]) -> Set<String> {
        Set(rows.compactMap { $0["id"] as? String }.filter { $0.hasPrefix(prefix) })
    }

    /// One document, or one that was never there.
    private func get(_ store: ToolSoakStore, _ random: inout SeededNumbers) throws {
        let id = random.pick(model.lasting + ["\(prefix)nothing"]) ?? ""
        guard let outcome = try command(store, "get", [id], refusals: ["documentNotFound"]) else { return }
        let isThere = outcome.status == ToolSoakStatus.done
        let document = model[id]
        try toolSoakExpect(isThere == (document != nil), "get: \(id) is \(isThere ? "" : "not ")there")
        guard isThere, let document else { return }
        guard let object = try outcome.objects.last?["document"] as? [String: Any] else {
            throw ToolSoakMismatch("get: \(id) is \(outcome.output)")
        }
        if let difference = document.difference(from: object) { throw ToolSoakMismatch("get: \(id): \(difference)") }
    }

    /// The documents of which it is the owner, the newest first, with an index or without.
    private func query(_ store: ToolSoakStore, _ random: inout SeededNumbers) throws {
        let least = random.isOne(in: 2) ? 0 : ToolSoakContent.sharedCount + random.below(4_000)
        let condition = ["--where", "owner = '\(name)' and n >= \(least)", "--order", "n,desc"]
        guard let rows = try command(store, "query", condition)?.objects else { return }
        let documents = rows.compactMap { $0["document"] as? [String: Any] }
        let numbers = documents.compactMap { $0["n"] as? Int }
        try toolSoakExpect(numbers == numbers.sorted(by: >), "query: the order of \(numbers) is wrong")
        let expected = model.lasting.compactMap { model[$0]?.number }.filter { $0 >= least }
        let missing = Set(expected).subtracting(numbers)
        try toolSoakExpect(missing.isEmpty, "query leaves out \(missing.sorted().prefix(20))")
        for document in documents {
            guard let id = document["_id"] as? String, let known = model[id] else {
                throw ToolSoakMismatch("query has \(document), which must not be there")
            }
            if let difference = known.difference(from: document) {
                throw ToolSoakMismatch("query: \(id): \(difference)")
            }
        }
    }

    /// Without a key the store is neither opened nor locked, and says what it is whoever uses it.
    private func info(_ store: ToolSoakStore, _ random: inout SeededNumbers) throws {
        if random.isOne(in: 2) {
            let outcome = try store.command(["info"], by: name, key: [])
            let isEncrypted = try outcome?.objects.last?["encrypted"] as? Bool
            try toolSoakExpect(
                isEncrypted == store.isEncrypted, "info without a key: \(String(describing: outcome?.output))")
        } else if let object = try command(store, "info", [])?.objects.last, store.isEncrypted {
            let count = object["documents"] as? Int ?? 0
            try toolSoakExpect(count >= model.lasting.count, "info says \(count) documents")
        }
    }
}
