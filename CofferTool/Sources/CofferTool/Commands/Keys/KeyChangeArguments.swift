internal import ArgumentParser
internal import Coffer

/// What the commands that re-encrypt a store have in common: how they tell how far they are, and what was done.
struct KeyChangeArguments: ParsableArguments {
    @Flag(help: "Report progress on standard error, even if it is not a terminal.")
    var progress = false

    /// Runs `change`, which ^C cancels, and shows how far it is.
    func run<Result: Sendable>(
        _ console: Console,
        _ change: @escaping @Sendable (@escaping @Sendable (CopyProgress) -> Void) async throws -> Result
    ) throws -> Result {
        let meter = WorkMeter(console, isAsked: progress)
        defer { meter.clear() }
        return try Interruptible.run { try await change { meter.show($0) } }
    }

    /// Prints what was done, and throws when something is left of an old generation.
    func print(_ result: KeyChangeResult, of store: String, _ console: Console) throws {
        try console.printResult(console.isJSON ? result.json(store) : result.text)
        guard let failure = result.oldGenerationLeft(of: store) else { return }
        try console.flush()
        throw failure
    }
}

extension KeyChangeResult {
    fileprivate var text: String {
        var lines = [
            "generation   \(oldGeneration) to \(newGeneration)",
            "documents    \(documentCount), in \(databaseByteCount) bytes",
            "attachments  \(attachmentCount), in \(attachmentByteCount) bytes",
        ]
        lines += keys.map { "key          \($0.text)" }
        lines += endedKeys.map { "ended        \($0.text)" }
        switch formerKey {
        case .refused: lines.append("old key      tried, and refused (401)")
        case .stillOpens: lines.append("old key      still opens the store: you gave it as one to keep")
        }
        lines.append("took         \(Int(duration / .milliseconds(1))) ms")
        return lines.joined(separator: "\n")
    }

    fileprivate func json(_ store: String) -> String {
        var line = JSONLine(type: "rekey")
        line.add("path", store)
        add(to: &line)
        line.add("milliseconds", Int(duration / .milliseconds(1)))
        return line.finished
    }

    /// Adds all that was done, but how long it took.
    func add(to line: inout JSONLine) {
        line.add("oldGeneration", oldGeneration)
        line.add("generation", newGeneration)
        line.add("keys", json: "[" + keys.map(\.json).joined(separator: ",") + "]")
        line.add("endedKeys", json: "[" + endedKeys.map(\.json).joined(separator: ",") + "]")
        line.add("documents", documentCount)
        line.add("databaseBytes", databaseByteCount)
        line.add("attachments", attachmentCount)
        line.add("attachmentBytes", attachmentByteCount)
        line.add("oldGenerationIsGone", oldGenerationIsGone)
        line.add("oldGenerations", json: oldGenerations.json)
        line.add("oldKeyOpens", formerKey == .stillOpens)
    }
}
