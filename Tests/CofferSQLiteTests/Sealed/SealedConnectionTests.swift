import CofferSealing
import Foundation
import Testing

@testable import CofferSQLite

@Suite("A connection to sealed pages")
struct SealedConnectionTests {
    private static let text = String(repeating: "canary-of-a-row ", count: 40)

    @Test("What was committed reads back from the log and, after a checkpoint, from the file, in every way of opening")
    func roundTrip() throws {
        let fixture = try SealedFixture()
        let writer = try fixture.connect()
        for number in 1...300 { try writer.insert(number, Self.text) }
        let expected = (1...300).map { "\($0) \(Self.text)" }
        #expect(try writer.rows() == expected)
        #expect(try fixture.rows(.readOnly) == expected)
        #expect(try writer.checkpoint(patience: .zero))
        #expect(try writer.rows() == expected)
        #expect(try writer.integrity() == "ok")
        try writer.close()
        #expect(try fixture.folder.names() == ["db.sqlite3"])
        for access in [Connection.Access.readWrite, .readOnly, .immutable] {
            #expect(try fixture.rows(access) == expected)
        }
    }
}
