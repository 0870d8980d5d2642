import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferModel
@testable import CofferVault

/// Pages that somebody made on purpose, or put back. Of a store that isn't encrypted anybody can make some.
@Suite("Salvaging hostile pages", .timeLimit(.minutes(30)))
struct HostilePageTests {
    @Test("Any bytes are salvaged as pages and rows, or refused, and none outside of them")
    func anyBytes() throws {
        var random = SeededNumbers(seed: 5)
        var cellCount = 0
        for round in 0..<4000 {
            var page = [UInt8](repeating: 0, count: round % 3 == 0 ? 4096 : 4048)
            for index in page.indices where round % 4 != 0 || index < 400 {
                page[index] = .random(in: .min ... .max, using: &random)
            }
            let header = round % 5 == 0 ? 100 : 0
            page[header] = [2, 5, 10, 13][round % 4]
            // Most of 65,536 cells would be outside.
            if round % 8 != 7 {
                (page[header + 3], page[header + 4]) = (0, UInt8(round % 100))
                for index in 0..<round % 100 { page[header + 8 + 2 * index] &= 15 }
            }
            guard let tree = TreePage(page, number: round % 5 == 0 ? 1 : 2) else { continue }
            for cell in tree.cells {
                cellCount += 1
                #expect(page.indices.contains(cell.local.lowerBound) || cell.local.isEmpty)
                #expect(cell.local.upperBound <= page.count && cell.byteCount >= cell.local.count)
                for isWhole in [true, false] {
                    guard let record = Record(Array(page[cell.local]), isWhole: isWhole) else { continue }
                    _ = try FoundRow(record, rowID: tree.kind.isTable ? cell.rowID : nil)
                }
            }
        }
        #expect(cellCount > 1000)
    }

    @Test("Rows that go round in circles, or claim what others have, end, and take nothing from whole ones")
    func circles() throws {
        let fixture = try SalvageFixture(key: nil, documentCount: 40)
        let source = try fixture.source()
        let file = try fixture.databaseFile
        let whole = try Data(contentsOf: file)
        var changes: [(inout Data) -> Void] = []
        for number in 2...UInt32(source.pageCount) {
            guard let page = try source.page(number), let tree = TreePage(page, number: number),
                tree.kind == .tableLeaf, let cell = tree.cells.first(where: { $0.overflow != nil }),
                let first = cell.overflow
            else { continue }
            let start = (Int(number) - 1) * 4096
            let next = (Int(first) - 1) * 4096
            // The second part is the first again; the row goes on in its own page; all rows begin at one place; a length
            // of gigabytes.
            changes.append { $0.replaceSubrange(next..<next + 4, with: Self.bytes(first)) }
            changes.append {
                $0.replaceSubrange(
                    start + cell.local.upperBound..<start + cell.local.upperBound + 4, with: Self.bytes(number))
            }
            changes.append { data in
                for index in 0..<tree.cells.count {
                    data.replaceSubrange(
                        start + 8 + 2 * index..<start + 10 + 2 * index, with: data[start + 8..<start + 10])
                }
            }
            changes.append { data in
                data.replaceSubrange(start + 3..<start + 5, with: [0x07, 0xd0])
                for index in 0..<2000 {
                    data.replaceSubrange(start + 8 + 2 * index..<start + 10 + 2 * index, with: [0x0f, 0xf0])
                }
            }
            changes.append { data in
                let place = start + Int(data[start + 8]) << 8 + Int(data[start + 9])
                data.replaceSubrange(place..<place + 5, with: [0x87, 0xff, 0xff, 0xff, 0x7f])
            }
        }
        #expect(changes.count > 10)
        for change in changes {
            var data = whole
            change(&data)
            try data.write(to: file)
            let outcome = try fixture.salvage()
            #expect(!outcome.result.isComplete)
            #expect(outcome.intact.count > 20)
        }
        // Page 1 says that there are more pages than any disk has, and the log too.
        var data = whole
        data.replaceSubrange(28..<32, with: [0xff, 0xff, 0xff, 0xff])
        try data.write(to: file)
        let outcome = try fixture.salvage()
        #expect(outcome.intact.count == fixture.original.documents.count)
        #expect(outcome.result.losses.count == 1)
    }

    @Test("Rows that claim to be long and go round in circles leave the others their time")
    func longCircles() throws {
        let fixture = try SalvageFixture(key: nil) { database in
            for number in 0..<5 {
                let text = SalvageFixture.text(number, count: 3000)
                try database.save(json: Data(#"{"t":"\#(text)"}"#.utf8), withID: "long-\(number)")
            }
        }
        let source = try fixture.source()
        var rows: [(place: Int, cell: TreePage.Cell)] = []
        for number in 2...UInt32(source.pageCount) {
            guard let page = try source.page(number), let tree = TreePage(page, number: number), tree.kind == .tableLeaf
            else { continue }
            for cell in tree.cells where cell.byteCount >= 16_384 {
                // Its length, of three bytes, and its number stand before it.
                var place = (Int(number) - 1) * 4096 + cell.local.lowerBound - 1
                while page[place % 4096 - 1] >= 0x80 { place -= 1 }
                rows.append((place, cell))
            }
        }
        rows.sort { $0.place < $1.place }
        try #require(rows.count == 5)
        let last = rows.removeLast()
        try fixture.databaseFile.patch { data in
            for row in rows {
                // As long as three bytes can say, with as much of it in the page.
                var length = row.cell.byteCount
                while length + 4092 < 1 << 21 { length += 4092 }
                let varint = [length >> 14 | 0x80, length >> 7 & 0x7f | 0x80, length & 0x7f].map {
                    UInt8(truncatingIfNeeded: $0)
                }
                #expect(data[row.place - 3] >= 0x80 && data[row.place - 2] >= 0x80)
                data.replaceSubrange(row.place - 3..<row.place, with: varint)
                let first = try #require(row.cell.overflow)
                let start = (Int(first) - 1) * 4096
                data.replaceSubrange(start..<start + 4, with: Self.bytes(first))
            }
        }
        let outcome = try fixture.salvage()
        #expect(outcome.result.losses.count >= rows.count)
        let long = fixture.original.documents.filter { $0.value.json.count > 15_000 }.keys
        #expect(outcome.intact.intersection(long).count == long.count - rows.count, "\(last.cell.rowID)")
    }

    @Test("A revision that says another document than the table of documents is salvaged for neither")
    func anotherID() throws {
        let fixture = try SalvageFixture(key: nil) { database in
            for number in 0..<9 {
                try database.save(json: Data(#"{"n":\#(number)}"#.utf8), withID: "document-\(number)")
            }
        }
        // Its id stands right before its body; nothing else in the row follows from it.
        let row = Data(#"document-4{"n":4}"#.utf8)
        try fixture.databaseFile.patch { data in
            let place = try #require(data.range(of: row))
            data[place.lowerBound + 9] = UInt8(ascii: "x")
        }
        let outcome = try fixture.salvage()
        #expect(outcome.contents.documents["document-x"] == nil)
        #expect(outcome.contents.documents["document-4"] == nil)
        #expect(outcome.named == ["document-4", "document-x"])
        #expect(outcome.intact.count == 8)
    }

    @Test("A later revision that says another document than the first one is salvaged for neither")
    func anotherIDLater() throws {
        let fixture = try SalvageFixture(key: nil) { database in
            for number in 0..<9 {
                let id = "document-\(number)"
                let first = try database.save(json: Data(#"{"n":\#(number)}"#.utf8), withID: id)
                if number == 4 {
                    try database.save(json: Data(#"{"n":44}"#.utf8), withID: id, replacing: first.revisionID)
                }
            }
        }
        let row = Data(#"document-4{"n":44}"#.utf8)
        try fixture.databaseFile.patch { data in
            let place = try #require(data.range(of: row))
            data[place.lowerBound + 9] = UInt8(ascii: "x")
        }
        let outcome = try fixture.salvage()
        #expect(outcome.contents.documents["document-x"] == nil)
        #expect(outcome.contents.documents["document-4"].map { $0.json } != Data(#"{"n":44}"#.utf8))
        #expect(outcome.named.contains("document-x"))
        #expect(outcome.intact.count == 8)
    }

    private static func bytes(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> UInt32(24 - 8 * $0)) }
    }

    /// Pages of before are right by their codes. What they say may contradict the others, and was true once.
    @Test(
        "Pages of another time bring no content under another document's name, nor one twice", arguments: [true, false])
    func otherTimes(isEncrypted: Bool) throws {
        var older = Data()
        var bodies: Set<String> = []
        func save(_ database: Database, _ numbers: Range<Int>, round: Int) throws {
            for number in numbers {
                let text = String(repeating: "x", count: number % 7 * 900)
                let draft = try database.document(withID: "d\(number)").newRevision()
                draft["d"] = .string("d\(number)")
                draft["r"] = .number(JSONNumber(round))
                draft["t"] = .string(text)
                bodies.insert(String(decoding: try draft.save().json, as: UTF8.self))
            }
        }
        let key = isEncrypted ? TestStores.key : nil
        let fixture = try SalvageFixture(key: key) { database in
            try database.inTransaction { try save(database, 0..<80, round: 0) }
            try SalvageFixture.emptyLog(of: database)
            older = try Data(contentsOf: URL(filePath: database.storage.databaseFile.path))
            try database.inTransaction {
                for number in 20..<60 { try database.document(withID: "d\(number)").purge() }
                try save(database, 60..<120, round: 1)
                try save(database, 30..<40, round: 2)
            }
        }
        let file = try fixture.databaseFile
        let whole = try Data(contentsOf: file)
        var random = SeededNumbers(seed: 3)
        for round in 0..<20 {
            var data = whole
            for page in 1..<min(older.count, whole.count) / 4096 where Int.random(in: 0..<4, using: &random) == 0 {
                let range = page * 4096..<(page + 1) * 4096
                data.replaceSubrange(range, with: older[range])
            }
            try data.write(to: file)
            let out = fixture.stores.url("out")
            try? FileManager.default.removeItem(at: out)
            try fixture.stores.manager.salvageDatabase(named: "db", encryptionKey: key, to: out)
            #expect(
                try fixture.stores.manager.verifyDatabase(named: "out", encryptionKey: key).findings == [],
                "round \(round)")
            let database = try fixture.stores.open("out", key: key)
            for id in try database.documentIDs() {
                let json = try #require(try database[id]?.currentRevision).json
                let text = String(decoding: json, as: UTF8.self)
                #expect(bodies.contains(text) && text.hasPrefix(#"{"d":"\#(id)","#), "round \(round)")
            }
            try database.close()
        }
    }
}
