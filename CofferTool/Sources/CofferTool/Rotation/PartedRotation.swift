internal import Coffer
internal import Foundation
internal import ArgumentParser

/// A rotation of stores of several owners: by one process after the other, each of which becomes an owner's for good before it
/// opens anything.
struct PartedRotation: Sendable {
    let parts: [Part]
    /// The old key, the new one, and those that are kept; without the new one where processes ask for that.
    let keys: Keys
    /// Finds the new key of a store, for parts that ask for it.
    let newKey: @Sendable (_ path: String, _ uuid: UUID) throws -> Key

    /// The keys of all stores, or what finds those of each.
    enum Keys: Sendable {
        case same([Key])
        case each(@Sendable (_ path: String, _ uuid: UUID) throws -> [Key])
    }

    /// The stores of one owner, and what is done to them: what the process receives, but for the keys.
    struct Part: Codable, Sendable {
        /// Nil for root's own.
        let owner: Owner?
        let paths: [String]
        let jobCount: Int
        let goesOn: Bool
        let isJSON: Bool
        /// Whether the process says which store it is about to change, and waits for a byte before it does.
        let announcesStores: Bool
        /// Whether the process receives no keys, and asks for those of each store.
        let asksForKeys: Bool
        /// Whether it receives no new key, and asks for that where it needs it.
        let asksForNewKey: Bool
        /// Whether it says how far each store is.
        let showsProgress: Bool
        var limits: RotationRun.Limits
        let manner: Rotation.Manner
    }

    /// A line of what the process says.
    enum Message: Codable, Sendable {
        case wantsKeys(path: String, uuid: UUID)
        case wantsNewKey(path: String, uuid: UUID)
        case begins(StoreBeginning)
        case progress(StoreProgress)
        case report(RotationReport)
    }

    struct Key: Sendable {
        let key: SymmetricKey
        let isPassword: Bool
    }

    /// Does it, and hands out what the processes report as it comes. Cancelled, it ends with the stores under way.
    ///
    /// - Parameters:
    ///   - log: records each store before it is changed.
    ///   - progress: told how far each store is.
    func run(
        _ log: ReceiptLog?, _ progress: (StoreProgress) -> Void, _ report: (RotationReport) throws -> Void
    ) async throws -> RotationRun.Summary {
        var summary = RotationRun.Summary(storeCount: parts.reduce(0) { $0 + $1.paths.count })
        for var part in parts where !Task.isCancelled && summary.goesOn(afterFailures: part.goesOn) {
            if let limit = part.limits.storeCount { part.limits.storeCount = limit - summary.rotatedCount }
            var rest = Set(part.paths)
            func add(_ result: RotationReport) throws {
                // An owner can tell the process to end: that is a failure, and cancels nothing of others'.
                if result.kind == .cancelled, !Self.isCancelled { return }
                rest.remove(result.path)
                summary.add(result)
                try report(result)
            }
            let status = try await run(part, log, progress, add)
            if status == ExitStatus.ok.rawValue { continue }
            // Whatever it ended with: it may have been told to before it noticed such things.
            if Self.isCancelled {
                summary.isCancelled = true
                break
            }
            for path in part.paths where rest.contains(path) {
                let failure = Failure.ownersProcessEnded(status, path)
                try add(RotationReport(RotationReceipt(path: path, outcome: .failed(failure)), isJSON: part.isJSON))
            }
        }
        summary.isCancelled = summary.isCancelled || (Task.isCancelled && summary.untriedCount > 0)
        return summary
    }

    /// Whether this process was told to end, also where its task was not yet.
    private static var isCancelled: Bool { Task.isCancelled || (try? Interruption.check()) == nil }

    /// - Returns: the status that the process ended with.
    private func run(
        _ part: Part, _ log: ReceiptLog?, _ progress: (StoreProgress) -> Void,
        _ report: (RotationReport) throws -> Void
    ) async throws -> Int32 {
        let sameKeys: [Key] = if case .same(let keys) = keys { keys } else { [] }
        let process = try ChildProcess([RotatePartCommand.name] + (part.isJSON ? ["--json"] : []))
        return try await withTaskCancellationHandler {
            do {
                // One that ends before it has read all says why itself.
                try? PartMessage.send(part, sameKeys, to: process.input)
                let decoder = JSONDecoder()
                try process.forEachLine { line in
                    switch try decoder.decode(Message.self, from: line) {
                    case .report(let result): try report(result)
                    case .wantsKeys(let path, let uuid):
                        guard case .each(let find) = keys else { break }
                        try? PartMessage.answer(with: Result { try find(path, uuid) }, to: process.input)
                    case .wantsNewKey(let path, let uuid):
                        guard part.asksForNewKey else { break }
                        try? PartMessage.answer(with: Result { [try newKey(path, uuid)] }, to: process.input)
                    case .progress(let store): progress(store)
                    case .begins(let store):
                        let mayChange = (try? log?.begin(store)) != nil
                        try? PartMessage.answer(mayChange, to: process.input)
                    }
                }
                process.endInput()
            } catch {
                // It may be waiting for keys or for leave, and would never end.
                process.endInput()
                process.terminate()
                // It may be waiting for room to write in, and would never end.
                try? process.forEachLine { _ in }
                _ = process.wait()
                throw error
            }
            return process.wait()
        } onCancel: {
            process.terminate()
        }
    }
}

/// The part of `coffer rotate` that a process does as the owner of some of the stores. Nobody calls it but that.
struct RotatePartCommand: ParsableCommand {
    static let name = "rotate-part"

    static let configuration = CommandConfiguration(
        commandName: name, abstract: "Do one owner's part of coffer rotate.", shouldDisplay: false)

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    func run() throws {
        Interruption.watch()
        let (part, keys) = try PartMessage.receive(PartedRotation.Part.self, from: STDIN_FILENO)
        try part.owner?.act()
        let channel = PartChannel()
        let rotationKeys = RotationKeys { path, uuid in
            let keys = part.asksForKeys ? try channel.keys(ofStoreAt: path, uuid) : keys
            guard part.asksForNewKey else { return try RotationKeys.OfStore(keys) }
            return try RotationKeys.OfStore(withoutNew: keys) { try channel.newKey(ofStoreAt: path, uuid) }
        }
        let rotation = Rotation(
            keys: rotationKeys, manner: part.manner,
            willChange: { store in if part.announcesStores { try channel.announce(store) } },
            progress: part.showsProgress ? channel.show : nil)
        let run = RotationRun(
            rotation: rotation, paths: part.paths, jobCount: part.jobCount, goesOn: part.goesOn, isJSON: part.isJSON,
            limits: part.limits)
        let summary = try Interruptible.run {
            try await run.run { report in try channel.report(report) }
        }
        // What failed was reported, and is not a failure of this process.
        if summary.isCancelled { ExitStatus.cancelled.endProcess() }
    }
}
