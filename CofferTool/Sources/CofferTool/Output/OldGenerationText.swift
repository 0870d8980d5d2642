internal import Coffer

extension KeyChangeResult {
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
