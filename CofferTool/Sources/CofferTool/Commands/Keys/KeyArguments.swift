internal import ArgumentParser
internal import Coffer
internal import CofferKeys

/// Where the new key comes from.
struct NewKeyArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Where the new key comes from, as for --key. Without it you are asked, twice, if there is a terminal.",
            valueName: "source"))
    var newKey: String?

    /// Where the arguments say that it comes from, for the store of that path; nil if somebody is asked.
    func namedSource(of store: String? = nil) throws(Failure) -> KeySource? {
        try newKey.map { (text) throws(Failure) in try KeySource(text, of: "--new-key") }?
            .asked(for: .new, of: store.flatMap { try? StorePath($0) })
    }

    func source() throws(Failure) -> KeySource {
        if let named = try namedSource() { return named }
        guard Terminal.isPresent else {
            throw Failure.usage("there is no new key", hint: "--new-key SOURCE names where it comes from")
        }
        return KeySource(origin: .prompt)
    }

    /// Throws, before anything else happens, when the new key can't be had, or is to be read where another one is.
    func checkStandardInput(_ arguments: StoreArguments, others: [KeySource] = []) throws(Failure) {
        try checkStandardInput([arguments.keySource()].compactMap(\.self) + others)
    }

    /// The same, beside those keys.
    func checkStandardInput(_ others: [KeySource]) throws(Failure) {
        let sources = try [source()] + others
        guard sources.count(where: \.usesStandardInput) < 2 else {
            throw Failure.usage("standard input cannot be two keys")
        }
    }

    func key(of path: StorePath, _ console: Console) throws(Failure) -> SymmetricKey {
        try source().asked(for: .new, of: path).newKey(for: "New key of \(Console.printable(path.fileName))", console)
    }

    var usesStandardInput: Bool {
        get throws(Failure) { try source().usesStandardInput }
    }
}

/// What a key is called.
struct LabelArguments: ParsableArguments {
    @Option(help: "The key's label: up to 200 bytes, kept encrypted in the store.")
    var label: String?
}

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
    func print(
        _ result: KeyChangeResult, of store: String, wasEncrypted: Bool = true, _ console: Console
    ) throws {
        try console.printResult(console.isJSON ? result.json(store) : result.text(wasEncrypted: wasEncrypted))
        guard let failure = result.oldGenerationLeft(of: store) else { return }
        try console.flush()
        throw failure
    }
}

extension KeyChangeResult {
    fileprivate func text(wasEncrypted: Bool) -> String {
        var lines = [
            "generation   \(oldGeneration) to \(newGeneration)",
            "documents    \(documentCount), in \(databaseByteCount) bytes",
            "attachments  \(attachmentCount), in \(attachmentByteCount) bytes",
        ]
        lines += keys.map { "key          \($0.text)" }
        lines += endedKeys.map { "ended        \($0.text)" }
        let formerKeyName = wasEncrypted ? "old key" : "no key "
        switch formerKey {
        case .refused: lines.append("\(formerKeyName)      tried, and refused (401)")
        case .stillOpens: lines.append("\(formerKeyName)      still opens the store: it is one of its keys")
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

    /// Why the command ends with 3 although the key was changed; nil if all is gone that was under another key.
    func oldGenerationLeft(of store: String) -> Failure? {
        oldGenerations.failure(
            of: store, isEncrypted: !keys.isEmpty, isGone: oldGenerationIsGone)
    }
}

extension ConversionResult {
    /// Why the command ends with 3 although the store was converted; nil if all is gone that was there before.
    func oldGenerationLeft(of store: String) -> Failure? {
        oldGenerations.failure(of: store, isEncrypted: true, isGone: oldGenerationIsGone, "the store was converted")
    }
}

extension [OldGeneration] {
    /// What to say of them, loudly; nil if there aren't any.
    ///
    /// - Parameters:
    ///   - isEncrypted: whether the store is by now.
    ///   - isGone: whether they are known to be gone.
    ///   - event: what was done all the same.
    func failure(of store: String, isEncrypted: Bool, isGone: Bool = true, _ event: String = "the key was changed")
        -> Failure?
    {
        guard !isEmpty else {
            guard !isGone else { return nil }
            return Failure(
                message: "\(store): \(event), but whether the old generation is gone for good is not known",
                hint: "the next opening for writing removes it if it is there", code: "oldGenerationLeft", status: 500,
                exit: .partlyDone)
        }
        let isReadable = isEncrypted && contains(where: \.mayBeReadable)
        var hint = "the next opening for writing removes what can be removed by then"
        if contains(where: { $0.failure != nil }) {
            hint = "remove it by hand, with chattr -R -i before where something in it is immutable"
            if isReadable { hint += "; until then the store opens for reading only" }
        }
        return Failure(
            message: "\(store): \(event), but " + map(\.text).joined(separator: "; and "), hint: hint,
            code: "oldGenerationLeft", status: 500, exit: .partlyDone)
    }

    /// Warns of what a change of the key has left that was killed, or couldn't remove. `store` is the store's path.
    func warn(of store: String, _ console: Console) {
        for warning in warnings(of: store) { warning.show(console) }
    }

    func warnings(of store: String) -> [OldGenerationWarning] {
        map { generation in
            let access = generation.mayBeReadable ? "may be readable without a key" : "can be read with its key alone"
            return OldGenerationWarning(
                message: "\(Console.printable(store)): a change of the key left an old generation in "
                    + "\(Console.printable(generation.path)): \(generation.byteCount) bytes, which \(access)",
                hint: "the next command that writes removes it: coffer compact \(Console.printable(store))")
        }
    }

    var json: String { "[" + map(\.json).joined(separator: ",") + "]" }
}

/// What a warning of an old generation says.
struct OldGenerationWarning: Codable {
    let message: String
    let hint: String

    func show(_ console: Console) { console.printWarning(message, code: "oldGenerationLeft", hint: hint) }
}

extension OldGeneration {
    private var reason: String {
        guard let failure else { return "somebody still reads there, or nobody has tried to remove it yet" }
        return (failure.subject.map { "\($0): " } ?? "") + (failure.detail ?? failure.description)
    }

    fileprivate var text: String {
        let access = mayBeReadable ? "may be readable without a key" : "can be read with its key alone"
        return "an old generation is left in \(path), which \(access) (\(reason))"
    }

    fileprivate var json: String {
        var line = JSONLine()
        line.add("path", path)
        line.add("bytes", byteCount)
        line.add("mayBeReadable", mayBeReadable)
        line.add("detail", reason)
        return line.finished
    }
}
