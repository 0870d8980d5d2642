import Coffer
import CofferTesting
import Foundation
import Notes
import Testing

/// What the app promises of its notes, proven on its own store with its own way to open it.
@Suite("Notes on the disk")
struct EncryptionTests {
    let stores = TemporaryStores()
    let secret = "meet me at the lighthouse after midnight"
    let key = SymmetricKey(password: "correct horse battery staple")

    private func makeNotes() throws -> Notes {
        let notes = try Notes(manager: stores.manager, key: key)
        try notes.write(secret, under: "Titles are secret too", picture: Data(secret.utf8))
        return notes
    }

    @Test("Nothing of a note can be read on the disk, while the app runs and after")
    func nothingReadable() throws {
        let store = stores.url(ofDatabaseNamed: "notes")
        let notes = try makeNotes()
        // Searching makes an index of the words.
        let found = try notes.search("MIDNIGHT light*")
        #expect(found.map(\.title) == ["Titles are secret too"])
        #expect(found.map(\.excerpt) == ["meet me at the *lighthouse* after *midnight*"])
        try expectNothingReadable(of: [secret, "Titles are secret too", "lighthouse"], in: store)
        try notes.close()
        try expectNothingReadable(of: [secret, "Titles are secret too"], in: store)

        // The control: the same search finds the same text in a store without encryption.
        let plain = try stores.manager.database(named: "plain")
        try plain.save(["text": secret], withID: "Titles are secret too")
        try expectReadable([secret, "Titles are secret too"], in: stores.url(ofDatabaseNamed: "plain"))
    }

    @Test("Only the notes' key opens them, and a wrong one changes nothing")
    func wrongKeys() throws {
        try makeNotes().close()
        try expectUnauthorized(at: stores.url(ofDatabaseNamed: "notes"), key: key) { key in
            try Notes(manager: stores.manager, key: key).close()
        }
    }

    @Test("An old key of the notes opens nothing once it was changed")
    func changedKey() throws {
        let notes = try makeNotes()
        let newKey = SymmetricKey(password: "a better one")
        try notes.changeKey(to: newKey)
        try notes.close()
        try expectUnauthorized(at: stores.url(ofDatabaseNamed: "notes"), key: newKey, formerKeys: [key])
    }
}
