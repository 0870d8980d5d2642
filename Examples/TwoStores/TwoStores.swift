import Coffer
import CofferSync
import Foundation

/// Two stores that have never seen each other, and a server between them: `swift run --traits Sync TwoStores`.
///
/// A phone and a laptop keep the same notes, each in a store under a key of its own. Both edit one while neither hears of
/// the other. What comes of that is a conflict, the same on both sides, until one of them resolves it.
@main
struct TwoStores {
    static func main() async throws {
        #if Sync
        let folder = URL.temporaryDirectory.appending(path: "coffer-two-stores-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await run(in: folder)
        #else
        print("This example uses the network: swift run --traits Sync TwoStores")
        #endif
    }
}

#if Sync
extension TwoStores {
    private static func run(in folder: URL) async throws {
        let phone = try await store("phone", in: folder)
        let laptop = try await store("laptop", in: folder)

        // The server keeps its copy in an encrypted store, too. Here it is in the same process; `coffer serve` is another.
        let serverKey = try SymmetricKey()
        var options = ListenerOptions(access: .passwords(["robin": "s3cret"]))
        options.encryptionKey = { _ in serverKey }
        let listener = try await Listener(Manager(directory: folder.appending(path: "server")), options: options)
        guard let server = URL(string: listener.url + "/notes") else { fatalError("a listener has a URL") }
        print("a server at \(server)")

        try await save("milk, bread", as: "shopping", in: phone)
        try await synchronize(phone, with: server)
        try await synchronize(laptop, with: server)
        print("the laptop has what the phone wrote: \(try text(of: "shopping", in: laptop))")

        // Neither knows what the other does.
        try await save("milk, bread, apples", as: "shopping", in: phone)
        try await save("milk, rye bread", as: "shopping", in: laptop)
        for _ in 0..<2 {
            try await synchronize(phone, with: server)
            try await synchronize(laptop, with: server)
        }
        for (name, database) in [("phone", phone), ("laptop", laptop)] {
            let leaves = try database.document(withID: "shopping").conflictingRevisions
            print("the \(name) has \(leaves.count) versions, and shows \(try text(of: "shopping", in: database))")
        }

        // Whoever resolves it does so for all: what the one adds to the other's text is a matter of the app.
        try await laptop.document(withID: "shopping").resolveConflicts { draft, others in
            var texts: [String] = []
            for value in try [draft["text"]] + others.map({ try $0.properties["text"] }) {
                texts.append(value?.stringValue ?? "")
            }
            let parts = Set(texts.flatMap { $0.components(separatedBy: ", ") })
            draft["text"] = parts.sorted().joined(separator: ", ")
        }
        try await synchronize(laptop, with: server)
        try await synchronize(phone, with: server)
        for (name, database) in [("phone", phone), ("laptop", laptop)] {
            let leaves = try database.document(withID: "shopping").conflictingRevisions
            print("the \(name) has \(leaves.count) version: \(try text(of: "shopping", in: database))")
        }
        await listener.stop()

        let revisions = try [phone, laptop].map { try $0["shopping"]?.currentRevision?.revisionID }
        guard revisions[0] == revisions[1], try text(of: "shopping", in: phone) == "apples, bread, milk, rye bread"
        else {
            fatalError("the two stores are not equal")
        }
        print("both are equal")
    }

    private static func store(_ name: String, in folder: URL) async throws -> Database {
        try await Manager(directory: folder.appending(path: name)).database(
            named: "notes", encryptionKey: try SymmetricKey())
    }

    /// Sends what is new here, and fetches what is new there.
    private static func synchronize(_ database: Database, with server: URL) async throws {
        var options = ReplicationOptions()
        options.credentials = .basic(name: "robin", password: "s3cret")
        options.createsTarget = true
        try await Replication(push: database, to: server, options: options).run()
        options.createsTarget = false
        try await Replication(pull: server, into: database, options: options).run()
    }

    private static func save(_ text: String, as id: String, in database: Database) async throws {
        let draft = try database.document(withID: id).newRevision()
        draft["text"] = text
        try await draft.save()
    }

    private static func text(of id: String, in database: Database) throws -> String {
        let text: String? = try database[id]?.currentRevision?["text"]
        return text ?? "nothing"
    }
}
#endif
