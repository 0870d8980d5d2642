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
