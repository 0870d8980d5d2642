import Foundation

@testable import Coffer

/// What the stores of ``StoreRecipe`` hold.
enum StoreContent {
    /// Byte i of the content that is called by a number is the low byte of i XOR ⌊i / 256⌋, plus the number.
    static func bytes(_ count: Int, _ number: UInt8 = 0) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 ^ ($0 >> 8)) &+ number })
    }

    /// Lengths at both sides of what a chunk of an attachment holds.
    static let lengths = [0, 1, 16_383, 16_384, 16_385, 40_000]

    /// Documents of every form, attachments, blobs, local documents and times to expire.
    static func fill(_ database: Database) throws {
        let id900 = "ä" + String(repeating: "9", count: 898)
        let json = [
            (
                "numbers",
                #"{"a":[0,-1,1.5,9223372036854775807,18446744073709551615,-9223372036854775808,1e300,5e-324]}"#
            ),
            (
                "text",
                #"{"":"empty key","\u0000\b\n":"\u001f\u007f/","\u00e9":"e\u0301","e\u0301":"not the same key","😀":"\"\\"}"#
            ),
            ("nested", #"{"a":{"b":{"c":[[[]],{},null,true,false]}},"@type":"blob"}"#),
            ("empty", "{}"), (id900, #"{"id":900}"#), ("_design/d", #"{"design":1}"#), ("-", #"{"n":0}"#),
        ]
        try database.inTransaction {
            for (id, json) in json { try database.save(json: Data(json.utf8), withID: id) }
            // At both sides of where a body gets a digest, and over several pages.
            for count in [2_048, 2_049, 20_000] {
                let text = String(repeating: "x", count: count - #"{"t":""}"#.utf8.count)
                try database.save(json: Data("{\"t\":\"\(text)\"}".utf8), withID: "body-\(count)")
            }
            try database.saveLocalDocument(["checkpoint": 7], withID: "one")
            try database.saveLocalDocument(["long": .string(String(repeating: "l", count: 5_000))], withID: "two")
            try database.saveLocalDocument(["long": "again"], withID: "one")
        }
        try fillWithAttachments(database)
        let year2100 = Date(timeIntervalSince1970: 4_102_444_800.123)
        try database.document(withID: "numbers").setExpirationDate(year2100)
    }

    /// Attachments of all lengths, two of them in several revisions, and blobs.
    static func fillWithAttachments(_ database: Database, lengths: [Int] = lengths) throws {
        let draft = try database.document(withID: "attachments").newRevision()
        for count in lengths {
            draft.setAttachment(
                named: "\(count)/ü.bin", contentType: count == 0 ? nil : "application/octet-stream",
                content: bytes(count))
        }
        draft["n"] = 1
        let next = try draft.save().createRevision()
        next.removeAttachment(named: "\(lengths[1])/ü.bin")
        next.setAttachment(named: "0/ü.bin", contentType: "text/plain", content: bytes(300, 1))
        try next.save()
        let blob = Blob(contentType: "image/png", data: bytes(16_385))
        let document = MutableDocument(
            id: "blobs",
            ["avatar": .blob(blob), "more": .array([.blob(Blob(data: bytes(500, 2))), .array([.blob(blob)])])])
        try database.saveDocument(document)
    }

    /// Deletions, conflicts, revisions of other databases, what is forgotten, purged and compacted.
    static func fillWithHistories(_ database: Database) throws {
        func save(_ id: String, _ number: Int) throws {
            try database.update(id, as: [String: Int].self) { $0["n"] = number }
        }
        func put(_ id: String, _ history: [String], _ number: Int, isDeletion: Bool = false) throws {
            try database.putExistingRevision(
                ["n": .number(JSONNumber(number))], withID: id, history: try ids(history), isDeletion: isDeletion)
        }
        for id in ["deleted", "deleted twice", "edited", "purged", "old"] {
            try database.save(json: Data(#"{"n":0}"#.utf8), withID: id)
        }
        try database.document(withID: "deleted").delete()
        try database.document(withID: "deleted twice").delete()
        try database.save(json: Data(#"{"n":1}"#.utf8), withID: "deleted twice")
        try database.document(withID: "deleted twice").delete()
        try save("edited", 1)
        try put("conflict", ["2-bbbb", "1-aaaa"], 1)
        try put("conflict", ["2-Zz \u{1}é", "1-aaaa"], 2)
        try put("conflict", ["3-0123456789abcdef0123456789abcdef", "2-0", "1-other"], 3, isDeletion: true)
        try put("conflict", ["1-" + String(repeating: "s", count: 198)], 4)
        try put("deleted elsewhere", ["9223372036854775807-x"], 5, isDeletion: true)
        try database.putExistingRevision(
            [
                "_attachments": [
                    "elsewhere": ["stub": true, "digest": "md5-T2WcwtnWK+GicRM4WZr2cQ==", "length": 23, "revpos": 1]
                ]
            ], withID: "awaited", history: try ids(["1-w"]))
        try database.compact()
        for number in 2..<6 { try save("edited", number) }
        try database.setMaxRevTreeDepth(3)
        for number in 1..<6 { try save("old", number) }
        try database.save(json: Data(#"{"last":true}"#.utf8), withID: "purged last")
        try database.document(withID: "purged").purge()
        try database.document(withID: "purged last").purge()
    }
}
