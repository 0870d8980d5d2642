import Foundation
import Synchronization
import Testing

@testable import Coffer

/// The samples of Couchbase Lite's guides, in one spelling. Each returns what it has come to.
protocol GuideSamples {
    /// The guide to databases: opening, creating, keys, background work, a database that the app brings along, deleting.
    static func databases(_ manager: Manager, bundle: URL, _ told: @escaping @Sendable () -> Void) throws -> [String]
    /// The guides to documents and their revisions.
    static func documents(
        _ database: Database, _ told: @escaping @Sendable (String) -> Void, untilAllTold wait: () -> Void
    ) throws -> [String]
    /// The guide and the tutorial of attachments.
    static func attachments(_ database: Database, photo: URL) throws -> [String]
    /// The guide to views and queries.
    static func views(_ database: Database) throws -> [String]
    /// What the old spelling alone refuses.
    static func refusals(_ stores: TestStores) throws
}

extension GuideSamples {
    static func refusals(_ stores: TestStores) throws {}
}

/// As the guides have them.
enum OldSpelling: GuideSamples {
    // Calls through the protocol don't warn.
    @available(*, deprecated)
    static func databases(_ manager: Manager, bundle: URL, _ told: @escaping @Sendable () -> Void) throws -> [String] {
        let shared = Manager.sharedInstance()
        manager.storageType = "SQLite"
        var encrypted = DatabaseOptions()
        encrypted.storageType = "SQLite"
        encrypted.encryptionKey = SymmetricKey(password: "password123456")
        encrypted.create = true
        let secret = try manager.openDatabaseNamed("secret", withOptions: encrypted)
        try secret.changeEncryptionKey(SymmetricKey(password: "password123457"))
        try secret.changeEncryptionKey(nil)
        let database = try manager.databaseNamed("my-database")
        try database.inBatch { try database.documentWithID("a").newRevision().save() }
        manager.backgroundTellDatabaseNamed("my-database") { database in
            if try database["a"]?.properties != nil { told() }
        }
        if try manager.existingDatabaseNamed("catalog") == nil {
            try manager.replaceDatabaseNamed("catalog", withDatabaseFile: bundle.path, withAttachments: nil)
        }
        let catalog = try manager.existingDatabaseNamed("catalog")
        try manager.replaceDatabaseNamed("catalog2", withDatabaseDir: bundle.path)
        let count = try catalog?.documentCount ?? 0
        try secret.deleteDatabase()
        return [
            "\(shared === Manager.shared)", "\(secret.name)", "\(count)", "\(manager.databaseExistsNamed("catalog2"))",
            "\(manager.databaseExistsNamed("secret"))",
        ]
    }

    @available(*, deprecated)
    static func documents(
        _ database: Database, _ told: @escaping @Sendable (String) -> Void, untilAllTold wait: () -> Void
    ) throws -> [String] {
        let token = database.addDocumentChangeListener(withID: "Robin") { _ in told("document") }
        let other = database.addChangeListener(withQueue: nil) { _ in told("database") }
        let document = database.documentWithID("Robin")
        try document.putProperties(["name": "Robin", "age": 31])
        var properties = try document.properties ?? [:]
        var results = ["\(thrown { try document.putProperties(properties) }?.status ?? 0)"]
        properties["_rev"] = try document.currentRevisionID.map { .string($0.description) }
        properties["age"] = 32
        let saved = try document.putProperties(properties)
        results += ["\(try saved.getHistory().count)", "\(try document.getLeafRevisions().count)"]
        results.append("\(thrown { try document.putProperties(properties) }?.status ?? 0)")
        results.append("\(try document.revisionWithID(saved.revisionID) == saved)")
        try document.putProperties(["_rev": .string(saved.revisionID.description), "_deleted": true])
        results.append("\(try database.existingDocumentWithID("Robin") == nil)")
        try document.purgeDocument()
        try database.putLocalDocument(["since": 17], withID: "checkpoint")
        results.append("\(try database.existingLocalDocumentWithID("checkpoint")?["since"] == 17)")
        wait()
        database.removeChangeListener(withToken: other)
        token.remove()
        return results
    }

    @available(*, deprecated)
    static func attachments(_ database: Database, photo: URL) throws -> [String] {
        let document = database.documentWithID("Robin")
        let draft = try document.newRevision()
        draft.setAttachmentNamed("photo.jpg", withContentType: "image/jpeg", content: Data([1, 2, 3]))
        try draft.setAttachmentNamed("photo2.jpg", withContentType: "image/jpeg", contentURL: photo)
        var results = ["\(draft.attachmentNamed("photo.jpg")?.length ?? 0)"]
        try draft.save()
        let revision = try document.currentRevision
        if let attachment = try revision?.attachmentNamed("photo2.jpg") {
            results += ["\(try attachment.content?.count ?? 0)", attachment.contentType ?? ""]
        }
        let newRevision = try revision?.createRevision()
        newRevision?.removeAttachmentNamed("photo.jpg")
        results += try newRevision?.save().attachmentNames ?? []
        return results
    }

    @available(*, deprecated)
    static func views(_ database: Database) throws -> [String] {
        try database.documentWithID("a").putProperties(["name": "Robin"])
        var results = ["\(try database.existingViewNamed("names") == nil)"]
        let view = database.viewNamed("names")
        try view.setMap(version: "1") { revision, emit in emit(try revision["name"] ?? .null) }
        results.append("\(try database.existingViewNamed("names") != nil)")
        results += try view.rows().all.map { $0.key.stringValue ?? "" }
        results += try database.createAllDocumentsQuery().all.map(\.documentID)
        return results
    }

    @available(*, deprecated)
    static func refusals(_ stores: TestStores) throws {
        let database = try stores.open()
        let document = database.documentWithID("a")
        #expect(thrown { try document.putProperties(["_deleted": 1]) }?.code == .invalidJSON)
        #expect(thrown { try document.putProperties(["_deleted": true]) }?.code == .documentNotFound)
        #expect(thrown { try document.putProperties(["_rev": "1-a"]) }?.code == .documentNotFound)
        let first = try document.putProperties(["_deleted": false, "_id": "a", "n": 1])
        #expect(try first.properties == ["n": 1])
        #expect(thrown { try document.putProperties(["_deleted": true]) }?.code == .conflict)
        #expect(thrown { try document.putProperties(["_x": 1]) }?.code == .invalidJSON)
        let elsewhere = thrown {
            try stores.manager.replaceDatabaseNamed(
                "catalog", withDatabaseFile: stores.url().path, withAttachments: "attachments")
        }
        #expect(elsewhere?.code == .invalidArgument)
        #expect(!stores.manager.databaseExists(named: "catalog"))
    }
}

/// As they are written here.
enum NewSpelling: GuideSamples {
    static func databases(_ manager: Manager, bundle: URL, _ told: @escaping @Sendable () -> Void) throws -> [String] {
        let shared = Manager.shared
        manager.storageType = .sqlite
        var encrypted = DatabaseOptions()
        encrypted.storageType = .sqlite
        encrypted.encryptionKey = SymmetricKey(password: "password123456")
        encrypted.create = true
        let secret = try manager.openDatabase(named: "secret", options: encrypted)
        try secret.changeEncryptionKey(to: SymmetricKey(password: "password123457"))
        try secret.changeEncryptionKey(to: nil)
        let database = try manager.database(named: "my-database")
        try database.inTransaction { try database.document(withID: "a").newRevision().save() }
        manager.backgroundTell(databaseNamed: "my-database") { database in
            if try database["a"]?.properties != nil { told() }
        }
        if try manager.existingDatabase(named: "catalog") == nil {
            try manager.replaceDatabase(named: "catalog", withDatabaseAt: bundle)
        }
        let catalog = try manager.existingDatabase(named: "catalog")
        try manager.replaceDatabase(named: "catalog2", withDatabaseAt: bundle)
        let count = try catalog?.documentCount ?? 0
        try secret.delete()
        return [
            "\(shared === Manager.shared)", "\(secret.name)", "\(count)",
            "\(manager.databaseExists(named: "catalog2"))",
            "\(manager.databaseExists(named: "secret"))",
        ]
    }

    static func documents(
        _ database: Database, _ told: @escaping @Sendable (String) -> Void, untilAllTold wait: () -> Void
    ) throws -> [String] {
        let document = database.document(withID: "Robin")
        let token = document.addChangeListener { _ in told("document") }
        let other = database.addChangeListener { _ in told("database") }
        try database.save(["name": "Robin", "age": 31] as JSONObject, withID: "Robin")
        var properties = try document.properties ?? [:]
        var results = ["\(thrown { try database.save(properties, withID: "Robin") }?.status ?? 0)"]
        properties["_rev"] = try document.currentRevisionID.map { .string($0.description) }
        properties["age"] = 32
        let saved = try database.save(properties, withID: "Robin")
        results += ["\(try saved.history.count)", "\(try document.leafRevisions.count)"]
        results.append("\(thrown { try database.save(properties, withID: "Robin") }?.status ?? 0)")
        results.append("\(try document.revision(withID: saved.revisionID) == saved)")
        try saved.deleteDocument()
        results.append("\(try database["Robin"] == nil)")
        try document.purge()
        try database.saveLocalDocument(["since": 17], withID: "checkpoint")
        results.append("\(try database.localDocument(withID: "checkpoint")?["since"] == 17)")
        wait()
        other.remove()
        token.remove()
        return results
    }

    static func attachments(_ database: Database, photo: URL) throws -> [String] {
        let document = database.document(withID: "Robin")
        let draft = try document.newRevision()
        draft.setAttachment(named: "photo.jpg", contentType: "image/jpeg", content: Data([1, 2, 3]))
        try draft.setAttachment(named: "photo2.jpg", contentType: "image/jpeg", contentsOf: photo)
        var results = ["\(draft.attachment(named: "photo.jpg")?.length ?? 0)"]
        try draft.save()
        let revision = try document.currentRevision
        if let attachment = try revision?.attachment(named: "photo2.jpg") {
            results += ["\(try attachment.content?.count ?? 0)", attachment.contentType ?? ""]
        }
        let newRevision = try revision?.createRevision()
        newRevision?.removeAttachment(named: "photo.jpg")
        results += try newRevision?.save().attachmentNames ?? []
        return results
    }

    static func views(_ database: Database) throws -> [String] {
        try database.save(["name": "Robin"] as JSONObject, withID: "a")
        var results = ["\(try database.existingView(named: "names") == nil)"]
        let view = database.view(named: "names")
        try view.setMap(version: "1") { revision, emit in emit(try revision["name"] ?? .null) }
        results.append("\(try database.existingView(named: "names") != nil)")
        results += try view.rows().all.map { $0.key.stringValue ?? "" }
        results += try database.allDocuments().all.map(\.documentID)
        return results
    }
}

@Suite("The guides' samples")
struct GuideSampleTests {
    let stores = TestStores()

    private static func samples(_ spelling: Int) -> any GuideSamples.Type {
        spelling == 0 ? OldSpelling.self : NewSpelling.self
    }

    @Test("The guides' samples of databases do what they say, in the old spelling and the new", arguments: [0, 1])
    func databases(spelling: Int) throws {
        let bundle = stores.directory.appending(path: "bundle")
        try stores.open("source", key: nil).save(json: Data("{}".utf8), withID: "a")
        try stores.open("source", key: nil).backup(to: bundle, encryptionKey: nil)
        let told = Mutex(0)
        let results = try Self.samples(spelling).databases(stores.manager, bundle: bundle) {
            told.withLock { $0 += 1 }
        }
        #expect(results == ["true", "secret", "1", "true", "false"])
        // Whoever asks for the queue's end waits for what was told before.
        stores.manager.background.sync {}
        #expect(told.withLock { $0 } == 1)
    }

    @Test("The guides' samples of documents do what they say, in the old spelling and the new", arguments: [0, 1])
    func documents(spelling: Int) throws {
        let told = Mutex<Set<String>>([])
        let results = try Self.samples(spelling).documents(stores.open()) { name in
            told.withLock { _ = $0.insert(name) }
        } untilAllTold: {
            // A listener that is removed is told nothing more, not even what it waits for already.
            for _ in 0..<30_000 where told.withLock({ $0.count < 2 }) { Thread.sleep(forTimeInterval: 0.001) }
        }
        #expect(results == ["409", "2", "1", "409", "true", "true", "true"])
        #expect(told.withLock { $0 } == ["document", "database"])
    }

    @Test("The guides' samples of attachments do what they say, in the old spelling and the new", arguments: [0, 1])
    func attachments(spelling: Int) throws {
        try stores.manager.makeDirectory()
        let photo = stores.directory.appending(path: "photo.jpg")
        try Data([1, 2, 3, 4]).write(to: photo)
        let results = try Self.samples(spelling).attachments(stores.open(), photo: photo)
        #expect(results == ["3", "4", "image/jpeg", "photo2.jpg"])
    }

    @Test("The guides' samples of views do what they say, in the old spelling and the new", arguments: [0, 1])
    func views(spelling: Int) throws {
        let results = try Self.samples(spelling).views(stores.open())
        #expect(results == ["true", "true", "Robin", "a"])
    }

    @Test("The guides' samples refuse in the old spelling what they would have to leave out")
    func refused() throws { try (OldSpelling.self as any GuideSamples.Type).refusals(stores) }
}
