internal import Coffer
internal import Foundation

/// What became of one store in a rotation: what an operator keeps.
struct RotationReceipt: Sendable {
    enum Outcome: Sendable {
        case rotated(KeyChangeResult)
        /// The old key does not open it, and the new one does; in what it is other than was asked for, and what is left of old
        /// generations.
        case wasRotated([Difference], left: [OldGeneration])
        /// What a rotation would do.
        case due
        case failed(Failure)
    }

    /// In what a store that the new key opens is other than a rotation would leave it.
    enum Difference: String, Sendable {
        /// The new key was added, or took another's place: somebody who had a key before may know what the data is
        /// encrypted under.
        case notEncryptedAnew
        /// Keys open it that are neither the new one nor to be kept.
        case otherKeysOpen
        /// A key that is to be kept does not open it.
        case keptKeyIsMissing

        var text: String {
            switch self {
            case .notEncryptedAnew: "it was not re-encrypted since the new key was added"
            case .otherKeysOpen: "other keys open it, too"
            case .keptKeyIsMissing: "a key that is to be kept does not open it"
            }
        }
    }

    let path: String
    /// What the store said of itself before; nil if it could not be read.
    var info: StoreInfo?
    var outcome: Outcome
    /// The database's own UUID, which tells copies of a store apart; nil if no key opened it.
    var databaseUUID: UUID?
    /// How long all of it took.
    var duration = Duration.zero

    var failure: Failure? {
        if case .failed(let failure) = outcome { failure } else { nil }
    }

    /// What is left of old generations, although the store has the new key.
    var oldGenerationLeft: Failure? {
        switch outcome {
        case .rotated(let result): result.oldGenerationLeft(of: path)
        case .wasRotated(_, let left): left.failure(of: path, isEncrypted: true)
        case .due, .failed: nil
        }
    }

    /// The outcome in a word of JSON, and in words for people.
    private var names: (json: String, text: String) {
        switch outcome {
        case .rotated: ("rotated", "rotated")
        case .wasRotated(let differences, _):
            differences.isEmpty ? ("alreadyRotated", "rotated before") : ("notAsAsked", "not as asked")
        case .due: ("due", "to be rotated")
        case .failed(let failure):
            failure.exit == .cancelled ? ("cancelled", "cancelled") : ("failed", "failed")
        }
    }

    private var milliseconds: Int { Int(duration / .milliseconds(1)) }

    /// One line for people.
    var text: String {
        let subject = "\(names.text)  \(Console.printable(path))"
        switch outcome {
        case .rotated(let result):
            let old = result.formerKey == .refused ? "the old key is refused" : "the old key still opens it"
            return subject
                + "  generation \(result.oldGeneration) to \(result.newGeneration), "
                + "\(result.documentCount.counted("document")), \(result.attachmentCount.counted("attachment")), "
                + "\(milliseconds) ms, \(old)"
        case .wasRotated(let differences, _):
            let generation = "generation \(info?.generation ?? 0), the old key is refused"
            return subject + "  " + ([generation] + differences.map(\.text)).joined(separator: ", but ")
        case .due:
            return subject + "  generation \(info?.generation ?? 0)"
        case .failed:
            return subject
        }
    }

    var json: String {
        var line = JSONLine(type: "receipt")
        addMembers(to: &line, path: path)
        return line.finished
    }

    /// What stands in a file of receipts.
    var members: String {
        var line = JSONLine()
        addMembers(to: &line, path: Self.absolute(path))
        return line.text
    }

    /// The store's place and UUID; nil if it could not be read.
    var store: ReceiptStore? {
        info.map { ReceiptStore(path: Self.absolute(path), uuid: $0.storeUUID.uuidString.lowercased()) }
    }

    /// The generation that the store has now.
    var generation: Int? {
        if case .rotated(let result) = outcome { result.newGeneration } else { info?.generation }
    }

    static func absolute(_ path: String) -> String { (try? StorePath(path))?.path ?? path }

    private func addMembers(to line: inout JSONLine, path: String) {
        line.add("path", path)
        line.add("outcome", names.json)
        if let info { line.add("uuid", info.storeUUID.uuidString.lowercased()) }
        if let databaseUUID { line.add("databaseUUID", databaseUUID.uuidString.lowercased()) }
        switch outcome {
        case .rotated(let result):
            result.add(to: &line)
        case .wasRotated, .due:
            guard let info else { break }
            line.add("generation", info.generation)
            line.add("keys", json: "[" + info.keySlots.map(\.json).joined(separator: ",") + "]")
            guard case .wasRotated(let differences, let left) = outcome else { break }
            line.add("oldKeyOpens", false)
            line.add("oldGenerations", json: left.json)
            if !differences.isEmpty {
                line.add("reasons", json: "[" + differences.map { "\"\($0.rawValue)\"" }.joined(separator: ",") + "]")
            }
        case .failed(let failure):
            if let info { line.add("generation", info.generation) }
            failure.add(to: &line)
        }
        line.add("milliseconds", milliseconds)
    }
}

/// What is printed and counted of one store's rotation: what crosses from a process of the store's owner, too.
struct RotationReport: Codable, Sendable {
    enum Kind: String, Codable, Sendable {
        case rotated, wasRotated, differs, due, failed, cancelled
    }

    let kind: Kind
    /// The store's.
    let path: String
    /// The receipt as it is printed, in JSON where that was asked for.
    let line: String
    /// What went wrong, if something did, or what is left of old generations.
    let failure: Failure?
    /// Whether the store has the new key, and something left of an old generation.
    let hasOldGeneration: Bool
    /// What goes into a file of receipts: members of JSON.
    let members: String
    /// The store's place and UUID; nil if it could not be read.
    let storePath: String?
    let storeUUID: String?
    /// The generation that the store has now.
    let generation: Int?

    var store: ReceiptStore? {
        guard let storePath, let storeUUID else { return nil }
        return ReceiptStore(path: storePath, uuid: storeUUID)
    }

    init(_ receipt: RotationReceipt, isJSON: Bool) {
        path = receipt.path
        line = isJSON ? receipt.json : receipt.text
        failure = receipt.failure ?? receipt.oldGenerationLeft
        hasOldGeneration = receipt.oldGenerationLeft != nil
        members = receipt.members
        (storePath, storeUUID) = (receipt.store?.path, receipt.store?.uuid)
        generation = receipt.generation
        kind =
            switch receipt.outcome {
            case .rotated: .rotated
            case .wasRotated(let differences, _): differences.isEmpty ? .wasRotated : .differs
            case .due: .due
            case .failed(let failure): failure.exit == .cancelled ? .cancelled : .failed
            }
    }
}
