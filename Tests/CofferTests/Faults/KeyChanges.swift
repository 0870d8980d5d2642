import CofferFaults
import Foundation

@testable import Coffer
@testable import CofferVault

/// Puts a store under another key, or none: with documents, attachments, and a log that was not copied into its file.
struct ChangingKey: StoreChange {
    let keys: [SymmetricKey?]
    var key: SymmetricKey? { keys[0] }

    func prepare(_ stores: TestStores) throws {
        let saving = SavingManyAttachments(key: key)
        try saving.prepare(stores)
        let database = try stores.open(key: key)
        let long = MutableDocument(id: "long", ["text": .string(String(repeating: "overflow ", count: 2_000))])
        try database.saveDocument(long)
        try database.document(withID: "before").currentRevision?.deleteDocument()
        for number in 0..<3 {
            let draft = try database.document(withID: "file \(number)").newRevision()
            let content = AttachmentTests.bytes(number * 16_384, seed: UInt64(number))
            draft.setAttachment(named: "content", contentType: nil, content: content)
            try draft.save()
        }
        // As a process does that is killed: the log stays beside the file.
        database.storage.refuseMoreWork()
        try database.close()
    }

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        let database = try stores.open(key: key) { $0.create = false }
        defer { try? database.close() }
        let result = try database.changeEncryptionKey(to: keys[1])
        guard result.formerKey == .refused else {
            throw CofferError(.invalidArgument, "the key was not changed as it should be")
        }
        try acknowledge()
    }
}
