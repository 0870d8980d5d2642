import CofferSQLite
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords

@Suite("Keys of a database")
struct KeyTests {
    let stores = TestStores()
    let password = SymmetricKey(password: "password123456")
    let recovery = SymmetricKey(password: "correct horse")
    let bytes = testKey(8)

    /// What opening with `key` says: nil when it opens.
    private func error(opening key: SymmetricKey?, _ name: String = "db") -> CofferError? {
        thrown { try stores.open(name, key: key) { $0.create = false } }
    }

    @Test("Keys are listed with their kind, label and time, and which of them opened it")
    func listed() throws {
        let database = try stores.open(key: password)
        let first = try #require(try database.keys.first)
        #expect(try database.keys.count == 1)
        #expect(first.kind == .scryptPassword(n: 1024, r: 8, p: 1))
        #expect(first.label == nil)
        #expect(first.isCurrent)
        #expect(abs(first.created.timeIntervalSinceNow) < 3600)

        let second = try database.addKey(bytes, label: "machine")
        let third = try database.addKey(recovery)
        #expect(second.kind == .bytes)
        #expect(second.label == "machine")
        #expect([second, third].allSatisfy { !$0.isCurrent })
        #expect(Set([first, second, third].map(\.id)).count == 3)
        #expect(try database.keys == [first, second, third])
        #expect(try stores.manager.storeInfo(named: "db").keySlots.map(\.id) == [first, second, third].map(\.id))
        #expect(try stores.manager.storeInfo(named: "db").sequence == 3)
        try database.close()

        for (index, key) in [password, bytes, recovery].enumerated() {
            for readOnly in [false, true] {
                let database = try stores.open(key: key) { $0.readOnly = readOnly }
                #expect(try database.keys.map(\.id) == [first, second, third].map(\.id))
                #expect(try database.keys.map(\.label) == [nil, "machine", nil])
                #expect(try database.keys.map(\.isCurrent) == (0..<3).map { $0 == index })
                try database.close()
            }
        }
        #expect(try stores.open("open", key: nil).keys == [])
    }

    @Test("Keys of a database each open everything, and what each of them saves; all others are a 401")
    func eachOpens() throws {
        var database = try stores.open(key: password)
        try database.save(json: json(0), withID: "d0")
        try database.addKey(bytes)
        try database.addKey(recovery)
        try database.close()
        for (number, key) in [bytes, recovery, password].enumerated() {
            database = try stores.open(key: key)
            try database.save(json: json(number + 1), withID: "d\(number + 1)")
            #expect(try database.documentCount == number + 2)
            try database.close()
        }
        for key in [nil, testKey(9), SymmetricKey(password: "correct horse ")] {
            #expect(error(opening: key)?.status == 401)
        }
    }

    @Test("Keys open a database that is open already as soon as they are added, and no more once they are removed")
    func whileOpen() throws {
        let database = try stores.open(key: password)
        #expect(error(opening: bytes)?.code == .wrongKey)
        let id = try database.addKey(bytes).id
        #expect(try stores.open(key: bytes) === database)
        try database.removeKey(id)
        #expect(error(opening: bytes)?.code == .wrongKey)
        #expect(try stores.open(key: password) === database)
    }

    @Test("Keys that are removed are a 401, in every way of opening, and change no byte")
    func removed() throws {
        let database = try stores.open(key: password)
        try database.addKey(bytes, label: "stays")
        try database.save(json: json(1), withID: "a")
        let old = try #require(try database.keys.first { $0.isCurrent })
        try database.removeKey(old.id)
        // What is open stays open.
        #expect(try database["a"]?["n"] == 1)
        try database.save(json: json(2), withID: "b")
        #expect(try database.keys.map(\.label) == ["stays"])
        #expect(try !database.keys.contains(where: \.isCurrent))
        try database.addKey(recovery)
        try database.close()

        let before = try stores.snapshot()
        for isReadOnly in [false, true] {
            #expect(thrown { try stores.open(key: password) { $0.readOnly = isReadOnly } }?.code == .wrongKey)
        }
        #expect(thrown { try stores.manager.database(named: "db", encryptionKey: password) }?.status == 401)
        #expect(thrown { try stores.manager.existingDatabase(named: "db", encryptionKey: password) }?.status == 401)
        #expect(try stores.snapshot() == before)
        #expect(try stores.open(key: bytes).documentIDs() == ["a", "b"])
    }

    @Test("Keys that take another's place open it, under the same label unless another is given")
    func replaced() throws {
        var database = try stores.open(key: password)
        let first = try #require(try database.keys.first)
        let other = try database.addKey(bytes, label: "machine")
        let new = try database.replaceKey(with: recovery)
        #expect(new.isCurrent)
        #expect(new.id != first.id)
        #expect(try database.keys == [new, other])
        #expect(error(opening: password)?.code == .wrongKey)

        let newMachine = try database.replaceKey(other.id, with: testKey(9))
        #expect(newMachine.label == "machine")
        #expect(try database.keys == [new, newMachine])
        let named = try database.replaceKey(newMachine.id, with: testKey(10), label: "server")
        #expect(try database.keys.map(\.label) == [nil, "server"])
        try database.replaceKey(named.id, with: testKey(11), label: "")
        #expect(try database.keys.map(\.label) == [nil, nil])
        try database.close()
        for key in [password, bytes, testKey(9), testKey(10)] { #expect(error(opening: key)?.code == .wrongKey) }
        database = try stores.open(key: recovery)
        #expect(try database.keys.map(\.isCurrent) == [true, false])
        // The same key, under a new salt.
        let again = try database.replaceKey(with: recovery)
        #expect(try database.keys.count == 2)
        #expect(again.id != new.id)
        try database.close()
        #expect(error(opening: testKey(11)) == nil)
    }

    @Test("Keys are original where everything was encrypted with them there, and not where they came later")
    func original() throws {
        let database = try stores.open(key: testKey(1))
        #expect(try database.keys.map(\.isOriginal) == [true])
        #expect(try !database.addKey(testKey(2)).isOriginal)
        #expect(try !database.replaceKey(with: testKey(3)).isOriginal)
        #expect(try database.keys.map(\.isOriginal) == [false, false])
        try database.changeEncryptionKey(to: testKey(4), keeping: [testKey(2)])
        #expect(try database.keys.map(\.isOriginal) == [true, true])
        try database.addKey(testKey(5))
        let copy = stores.directory.appending(path: "copy.coffer")
        try database.backup(to: copy, encryptionKey: testKey(6))
        try database.close()
        let again = try stores.open(key: testKey(5))
        #expect(try again.keys.map(\.isOriginal) == [true, true, false])
        #expect(try stores.open("copy", key: testKey(6)).keys.map(\.isOriginal) == [true])
        // As an earlier version made it.
        try again.storage.write { (writer) throws(CofferError) in
            try writer.tables.connection.execute("DELETE FROM info WHERE key = 'first_keys'")
        }
        #expect(try again.keys.map(\.isOriginal) == [true, true, true])
        #expect(try again.verify().findings == [])
        try again.changeEncryptionKey(to: testKey(7), keeping: [], droppingOtherKeys: true)
        #expect(try again.keys.map(\.isOriginal) == [true])
    }

    @Test("Keys that open it already are a 409, in any composition of their characters")
    func already() throws {
        let accented = SymmetricKey(password: "Caf\u{e9}")
        let database = try stores.open(key: accented)
        let other = try database.addKey(bytes)
        try database.addKey(recovery)
        try database.close()
        for opener in [accented, bytes] {
            let database = try stores.open(key: opener)
            let keys = try database.keys
            for key in [accented, SymmetricKey(password: "Cafe\u{301}"), bytes, recovery] {
                let error = thrown { try database.addKey(key, label: "again") }
                #expect(error?.code == .conflict)
                #expect(error?.status == 409)
                #expect(error?.subject == "database db")
            }
            #expect(thrown { try database.replaceKey(other.id, with: recovery) }?.code == .conflict)
            #expect(try database.keys == keys)
            try database.close()
        }
    }

    @Test("Keys are eight at most: the ninth is a 409 before it costs a derivation, and leaves no label")
    func eight() throws {
        let database = try stores.open(key: password)
        for number: UInt8 in 1...7 { try database.addKey(testKey(number), label: "key \(number)") }
        let keys = try database.keys
        #expect(keys.count == 8)
        let count = Derivations.count {
            #expect(thrown { try database.addKey(recovery, label: "ninth") }?.code == .conflict)
        }
        #expect(count == 0)
        #expect(try database.keys == keys)
        let replacing = try database.replaceKey(keys[3].id, with: recovery)
        #expect(try database.keys[3] == replacing)
        try database.removeKey(keys[5].id)
        try database.addKey(bytes, label: "again")
        #expect(try database.keys.map(\.label)[5] == "again")
        #expect(try stores.labels(database).count == 7)
    }

    @Test("Keys never go all: the last is a 409, and stays")
    func last() throws {
        let database = try stores.open(key: password)
        let key = try #require(try database.keys.first)
        #expect(thrown { try database.removeKey(key.id) }?.code == .conflict)
        #expect(try database.keys == [key])
        try database.close()
        #expect(error(opening: password) == nil)
    }

    @Test("Keys are refused where they can't be, and nothing is changed")
    func refused() throws {
        let database = try stores.open(key: password)
        let id = try #require(try database.keys.first).id
        try database.addKey(bytes)
        try database.close()
        let before = try stores.snapshot()

        let open = try stores.open(key: password)
        for attempt: (Database) throws -> Void in [
            { try $0.addKey(recovery) }, { try $0.removeKey(id) }, { try $0.replaceKey(with: recovery) },
        ] {
            let inTransaction = thrown { try open.inTransaction { try attempt(open) } }
            #expect(inTransaction?.code == .invalidArgument)
        }
        for unknown in ["", "0", "0000000000000000", id.uppercased() + " ", String(id.dropLast())] {
            #expect(thrown { try open.removeKey(unknown) }?.code == .invalidArgument)
            #expect(thrown { try open.replaceKey(unknown, with: recovery) }?.status == 400)
        }
        let empty = SymmetricKey(password: "")
        #expect(thrown { try open.addKey(empty) }?.code == .invalidKey)
        #expect(thrown { try open.replaceKey(with: empty) }?.code == .invalidKey)
        for label in [String(repeating: "x", count: 201), String(repeating: "\u{e9}", count: 101)] {
            #expect(thrown { try open.addKey(recovery, label: label) }?.code == .invalidArgument)
            #expect(thrown { try open.replaceKey(with: recovery, label: label) }?.code == .invalidArgument)
        }
        try open.close()
        #expect(thrown { try open.keys }?.code == .closed)
        #expect(thrown { try open.addKey(recovery) }?.code == .closed)

        let reading = try stores.open(key: password) { $0.readOnly = true }
        #expect(thrown { try reading.addKey(recovery) }?.code == .readOnly)
        #expect(thrown { try reading.removeKey(id) }?.status == 403)
        #expect(thrown { try reading.replaceKey(with: recovery) }?.status == 403)
        try reading.close()
        #expect(try stores.snapshot() == before)

        let unencrypted = try stores.open("open", key: nil)
        #expect(thrown { try unencrypted.addKey(recovery) }?.code == .notEncrypted)
        #expect(thrown { try unencrypted.replaceKey(with: recovery) }?.status == 401)
        #expect(thrown { try unencrypted.removeKey(id) }?.status == 401)
    }

    @Test("Keys that were used to open it and removed have to be named to be replaced")
    func replacingWhatIsGone() throws {
        let database = try stores.open(key: password)
        let other = try database.addKey(bytes)
        try database.removeKey(try #require(try database.keys.first).id)
        #expect(thrown { try database.replaceKey(with: recovery) }?.code == .invalidArgument)
        try database.replaceKey(other.id, with: recovery)
        try database.close()
        #expect(error(opening: recovery) == nil)
        #expect(error(opening: bytes)?.status == 401)
    }

    @Test("Keys have labels of any characters, up to 200 bytes")
    func labels() throws {
        let database = try stores.open(key: password)
        let labels = [
            "a", String(repeating: "x", count: 200), String(repeating: "\u{e9}", count: 100), "Cafe\u{301}",
            "quote ' \" \n\u{0}end", "label!", "label ",
        ]
        for (number, label) in labels.enumerated() { try database.addKey(testKey(UInt8(100 + number)), label: label) }
        try database.close()
        let found = try stores.open(key: password).keys.dropFirst().map(\.label)
        #expect(found.map { $0.map { Array($0.utf8) } } == labels.map { Array($0.utf8) })
    }

    @Test("Keys cost a derivation when they are passwords and none when they are not, and nothing is encrypted again")
    func cost() throws {
        let database = try stores.open(key: password)
        let draft = try database.document(withID: "a").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Data(count: 100_000))
        try draft.save()
        let generation = try stores.generation()
        func attachments() throws -> [String: Data] { try stores.snapshot().filter { $0.key.hasSuffix(".blob") } }
        let before = try attachments()
        #expect(before.count == 1)

        let openCost = try Derivations.count {
            try TestStores(sharing: stores.directory.path).open("other", key: password).delete()
        }
        #expect(openCost == 1, "the count counts")
        #expect(try Derivations.count { try database.addKey(bytes) } == 0)
        #expect(try Derivations.count { try database.replaceKey(with: recovery) } == 1)
        #expect(try Derivations.count { try database.addKey(password) } == 1)
        // One more for the other password, which it might be.
        let third = SymmetricKey(password: "third")
        #expect(try Derivations.count { try database.addKey(third) } == 2)
        let keys = try database.keys
        #expect(try Derivations.count { try database.removeKey(keys[0].id) } == 0)
        #expect(try Derivations.count { _ = try database.keys } == 0)

        #expect(try attachments() == before)
        #expect(try stores.generation() == generation)
        #expect(try stores.manager.storeInfo(named: "db").generation == 1)
    }
}

extension TestStores {
    /// All labels in the database, whether there is a key to each or not.
    func labels(_ database: Database) throws -> [String] {
        try database.storage.read { (tables) throws(CofferError) in
            try KeyLabels.read(from: tables.connection).values.sorted()
        }
    }
}
