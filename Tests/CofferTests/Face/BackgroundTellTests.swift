import Foundation
import Testing

@testable import Coffer

@Suite("Telling a database in the background")
struct BackgroundTellTests {
    let stores = TestStores()

    @Test("A call in the background runs on a thread of its own, in order, with the database that is open")
    func order() throws {
        let database = try stores.open()
        let (mayBegin, isOver) = (Gate(), Gate())
        let tally = Tally()
        stores.manager.backgroundTell(databaseNamed: "db") { told in
            mayBegin.wait()
            if told === database { tally.count("same") }
            if !Thread.isMainThread { tally.count("elsewhere") }
            try told.save(json: json(0), withID: "d0")
        }
        for number in 1..<20 {
            database.manager.backgroundTell(databaseNamed: "db") { told in
                // Each finds what the one before has done.
                guard try told["d\(number - 1)"] != nil else { return tally.count("out of order") }
                try told.save(json: json(number), withID: "d\(number)")
                if number == 19 { isOver.open() }
            }
        }
        // Nothing of it was waited for.
        #expect(try database.documentCount == 0)
        mayBegin.open()
        #expect(isOver.wait())
        #expect(try database.documentCount == 20)
        #expect(tally.all == ["same": 1, "elsewhere": 1])
    }

    @Test("A call in the background opens or creates the database, and says what went wrong")
    func failures() throws {
        try stores.open("secret").close()
        let (tally, isOver) = (Tally(), Gate())
        let note: @Sendable (any Error) -> Void = { tally.count(($0 as? CofferError)?.code.description ?? "\($0)") }
        stores.manager.backgroundTell(databaseNamed: "new", { tally.count("\($0.isEncrypted)") }, onFailure: note)
        stores.manager.backgroundTell(databaseNamed: "secret", { _ in tally.count("opened") }, onFailure: note)
        stores.manager.backgroundTell(databaseNamed: "Bad", { _ in tally.count("opened") }, onFailure: note)
        stores.manager.backgroundTell(databaseNamed: "new", { _ in throw CancellationError() }, onFailure: note)
        stores.manager.backgroundTell(databaseNamed: "secret") { _ in tally.count("opened") }
        stores.manager.backgroundTell(databaseNamed: "new") { _ in isOver.open() }
        #expect(isOver.wait())
        #expect(
            tally.all == ["false": 1, "keyRequired": 1, "invalidDatabaseName": 1, "CancellationError()": 1])
    }

    @Test("A call in the background finds a database that is closed or deleted meanwhile closed, and hangs nobody")
    func closing() throws {
        for isDeleted in [false, true] {
            let database = try stores.open(key: nil)
            let (isUnderWay, isOver) = (Gate(), Gate())
            let tally = Tally()
            stores.manager.backgroundTell(databaseNamed: "db") { told in
                isUnderWay.open()
                defer { isOver.open() }
                for number in 0..<1_000_000 {
                    if let error = thrown({ try told.save(json: json(number)) }) {
                        return tally.count(error.code.description)
                    }
                }
            }
            isUnderWay.wait()
            if isDeleted { try database.delete() } else { try database.close() }
            #expect(isOver.wait())
            #expect(tally.all == ["closed": 1])
        }
        // It may close the database itself.
        let database = try stores.open(key: nil)
        let isOver = Gate()
        stores.manager.backgroundTell(databaseNamed: "db") { told in
            try told.close()
            isOver.open()
        }
        #expect(isOver.wait())
        #expect(thrown { try database.documentCount }?.code == .closed)
    }
}
