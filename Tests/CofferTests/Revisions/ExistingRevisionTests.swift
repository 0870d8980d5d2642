import Foundation
import Testing

@testable import Coffer

@Suite("A revision of another database")
struct ExistingRevisionTests {
    let stores = TestStores()
    let database: Database

    init() throws { database = try stores.open() }

    private func put(
        _ history: String..., properties: JSONObject = [:], isDeletion: Bool = false
    ) throws -> ExistingRevisionResult {
        try database.putExistingRevision(
            properties, withID: "doc", history: ids(history), isDeletion: isDeletion)
    }

    @Test("A foreign revision keeps its id, joins its nearest ancestor, and brings those in between as ids alone")
    func joins() throws {
        let document = database.document(withID: "doc")
        let first = try put("3-ccc", "2-bbb", "1-aaa", properties: ["n": 3])
        #expect(first.revision.revisionID.description == "3-ccc")
        #expect(first.isCurrent && !first.wasKnown && !first.isBranch)
        #expect(try document.historyTexts == ["3-ccc", "2-bbb", "1-aaa"])
        #expect(try document.properties == ["n": 3])
        let ancestor = try #require(try document.revision(withID: ids("2-bbb")[0]))
        #expect(try !ancestor.propertiesAvailable)
        #expect(thrown { try ancestor.properties }?.code == .revisionNotFound)
        #expect(try ancestor.parentRevisionID?.description == "1-aaa")

        let next = try put("5-eee", "4-ddd", "3-ccc", properties: ["n": 5])
        #expect(next.isCurrent && !next.isBranch)
        #expect(try next.revision.parentRevision?.revisionID.description == "4-ddd")
        #expect(try document.revision(withID: ids("3-ccc")[0])?.properties == ["n": 3])

        let branch = try put("3-xxx", "2-bbb", "1-zzz", properties: ["x": true])
        #expect(!branch.isCurrent && branch.isBranch)
        #expect(try branch.revision.history.map(\.revisionID.description) == ["1-aaa", "2-bbb", "3-xxx"])
        let other = try put("1-qqq")
        #expect(other.isBranch)
        #expect(try document.leafTexts == ["5-eee", "3-xxx", "1-qqq"])
        #expect(try document.conflictingRevisions.count == 3)
        let later = try put("6-fff", "5-eee")
        #expect(later.isCurrent && !later.isBranch)
        let longer = try put("8-yyy", "7-yyy", "6-yyy", "5-yyy", "4-yyy", "3-xxx")
        #expect(longer.isCurrent && !longer.isBranch)
        #expect(try document.leafTexts == ["8-yyy", "6-fff", "1-qqq"])
        #expect(try database.contradictions() == [])
    }

    @Test("A foreign revision changes nothing when it is known, as a leaf or as an ancestor, and gets no sequence")
    func known() throws {
        let first = try put("3-ccc", "2-bbb", "1-aaa", properties: ["n": 3])
        let last = try database.lastSequenceNumber
        for history in [["3-ccc", "2-bbb", "1-aaa"], ["3-ccc"], ["3-ccc", "2-other"]] {
            let again = try database.putExistingRevision(["n": 4], withID: "doc", history: ids(history))
            #expect(again.wasKnown && again.isCurrent && !again.isBranch)
            #expect(again.revision == first.revision)
            #expect(try again.revision.properties == ["n": 3])
        }
        let ancestor = try put("2-bbb", "1-aaa", properties: ["n": 2])
        #expect(ancestor.wasKnown && !ancestor.isCurrent)
        #expect(try database.lastSequenceNumber == last)
        #expect(try database.document(withID: "doc").leafTexts == ["3-ccc"])
    }

    @Test("A foreign revision that a save made is the same here, whichever came first")
    func sameAsSave() throws {
        let draft = try database.document(withID: "doc").newRevision()
        draft["n"] = 1
        let saved = try draft.save()
        let other = try stores.open("other")
        let copy = try other.putExistingRevision(["n": 1], withID: "doc", history: [saved.revisionID])
        #expect(try copy.revision.json == saved.json)
        let second = try copy.revision.createRevision()
        second["n"] = 2
        draft["n"] = 2
        #expect(try second.save().revisionID == draft.save().revisionID)

        // A save that comes to what a peer has brought is that.
        let theirs = try saved.createRevision()
        theirs["n"] = 2
        #expect(try theirs.saveAllowingConflict().revisionID == draft.parentRevisionID)
        #expect(try database.document(withID: "doc").leafRevisions.count == 1)

        // Where only its id was known it has its properties all the same.
        draft["n"] = 3
        let third = try draft.save()
        let history = try third.history.reversed().map(\.revisionID)
        let fresh = try stores.open("fresh")
        let first = try fresh.putExistingRevision(["n": 1], withID: "doc", history: [saved.revisionID]).revision
        _ = try fresh.putExistingRevision(["n": 3], withID: "doc", history: history)
        let between = try first.createRevision()
        between["n"] = 2
        let known = try between.saveAllowingConflict()
        #expect(known.revisionID == history[1])
        #expect(try known.properties == ["n": 2])
        #expect(try fresh.document(withID: "doc").leafTexts == [third.revisionID.description])
    }

    @Test("A foreign revision may be a deletion, with properties or without, and any branch can be deleted")
    func deletions() throws {
        let document = database.document(withID: "doc")
        #expect(try put("2-b", "1-a", isDeletion: true).isCurrent)
        #expect(try document.isDeleted)
        #expect(try document.currentRevision == nil)
        #expect(try document.leafTexts == ["-2-b"])
        #expect(try document.conflictingRevisions == [])
        #expect(try database.documentCount == 0)

        let live = try put("1-live", properties: ["a": 1])
        #expect(live.isCurrent && live.isBranch)
        #expect(try database.documentCount == 1)
        #expect(try document.conflictingRevisions.map(\.revisionID.description) == ["1-live"], "no conflict")
        _ = try put("2-end", "1-live", properties: ["why": "spam"], isDeletion: true)
        #expect(try document.leafTexts == ["-2-end", "-2-b"])
        #expect(try document.leafRevisions[0].properties == ["why": "spam"])
        #expect(try document.leafRevisions[1].properties == [:])

        // Saved again, it goes on from the deletion that counts.
        let draft = try document.newRevision()
        #expect(draft.properties == [:])
        let again = try draft.save()
        #expect(again.revisionID.generation == 3)
        #expect(try document.leafTexts == [again.revisionID.description, "-2-b"])
        #expect(try database.contradictions() == [])
    }

    @Test("A foreign revision is read as CouchDB writes it")
    func wire() throws {
        let json = """
            {"_id":"conf","_rev":"3-cccc","_revisions":{"start":3,"ids":["cccc","bbbb","aaaa"]},"w":"c",
             "_attachments":{"t.txt":{"content_type":"text/plain","revpos":0,"digest":"md5-ghPXQlvT1PDLLSvWCTiz0g==",
             "length":8,"stub":true},"u.txt":{"content_type":"text/plain","revpos":2,"data":"aGVsbG8=",
             "digest":"md5-XUFAKrxLKna5cZ2REBfFkg=="}}}
            """
        let result = try database.putExistingRevision(json: Data(json.utf8))
        #expect(result.revision.revisionID.description == "3-cccc")
        #expect(try result.revision.properties == ["w": "c"])
        #expect(try database.document(withID: "conf").historyTexts == ["3-cccc", "2-bbbb", "1-aaaa"])
        let away = try #require(try result.revision.attachment(named: "t.txt"))
        #expect(away.digest == "md5-ghPXQlvT1PDLLSvWCTiz0g==")
        #expect(away.length == 8)
        #expect(away.changedInGeneration == 3, "CouchDB says 0 where it does not know")
        #expect(!away.contentAvailable)
        #expect(try away.content == nil)
        let here = try #require(try result.revision.attachment(named: "u.txt"))
        #expect(here.digest == "sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00=")
        #expect(here.changedInGeneration == 2)
        #expect(try here.content == Data("hello".utf8))

        let tombstone = #"{"_id":"gone","_rev":"2-d","_revisions":{"start":2,"ids":["d","a"]},"_deleted":true}"#
        #expect(try database.putExistingRevision(json: Data(tombstone.utf8)).revision.isDeletion)
        #expect(try database.document(withID: "gone").isDeleted)
    }

    @Test(
        "A foreign revision is refused when it contradicts itself or what is said of it, and changes nothing",
        arguments: [
            (#"{"_rev":"1-a"}"#, CofferError.Code.invalidArgument),
            (#"{"_id":"a"}"#, .invalidArgument), (#"{"_id":"_x","_rev":"1-a"}"#, .invalidDocumentID),
            (#"{"_id":"_local/x","_rev":"1-a"}"#, .invalidDocumentID),
            (#"{"_id":"","_rev":"1-a"}"#, .invalidDocumentID),
            (#"{"_id":"a","_rev":"a"}"#, .invalidJSON), (#"{"_id":"a","_rev":"0-a"}"#, .invalidJSON),
            (#"{"_id":"a","_rev":"9223372036854775808-a"}"#, .invalidJSON), (#"{"_id":"a","_rev":1}"#, .invalidJSON),
            (#"{"_id":"a","_rev":"2-a","_revisions":{"start":2,"ids":["b","c"]}}"#, .invalidArgument),
            (#"{"_id":"a","_rev":"2-a","_revisions":{"start":3,"ids":["a","c"]}}"#, .invalidArgument),
            (#"{"_id":"a","_rev":"2-a","_revisions":{"start":2,"ids":["a","b","c"]}}"#, .invalidJSON),
            (#"{"_id":"a","_rev":"1-a","_revisions":[]}"#, .invalidJSON),
            (#"{"_id":"a","_rev":"1-a","_deleted":1}"#, .invalidJSON),
            (#"{"_id":"a","_rev":"1-a","_x":1}"#, .invalidJSON),
            (#"{"_id":"a","_rev":"1-a","x":1e999}"#, .invalidJSON), (#"["_id"]"#, .invalidJSON), ("", .invalidJSON),
            (#"{"_id":"a","_rev":"1-a","_attachments":[]}"#, .invalidJSON),
            (#"{"_id":"a","_rev":"1-a","_attachments":{"x":1}}"#, .invalidAttachment),
            (#"{"_id":"a","_rev":"1-a","_attachments":{"x":{"stub":true,"length":1}}}"#, .invalidAttachment),
            (#"{"_id":"a","_rev":"1-a","_attachments":{"x":{"stub":true,"digest":"d"}}}"#, .invalidAttachment),
            (#"{"_id":"a","_rev":"1-a","_attachments":{"x":{"digest":"d","length":1}}}"#, .invalidAttachment),
            (
                #"{"_id":"a","_rev":"1-a","_attachments":{"x":{"stub":true,"digest":"d","length":-1}}}"#,
                .invalidAttachment
            ),
            (
                #"{"_id":"a","_rev":"1-a","_attachments":{"x":{"stub":true,"digest":"d","length":1,"revpos":2}}}"#,
                .invalidAttachment
            ),
            (
                #"{"_id":"a","_rev":"1-a","_attachments":{"x":{"follows":true,"digest":"d","length":1}}}"#,
                .invalidAttachment
            ),
            (#"{"_id":"a","_rev":"1-a","_attachments":{"x":{"data":"%%%"}}}"#, .invalidAttachment),
            (#"{"_id":"a","_rev":"1-a","_attachments":{"x":{"data":"aGVsbG8=","length":4}}}"#, .invalidAttachment),
            (
                #"{"_id":"a","_rev":"1-a","_attachments":{"x":{"data":"aGVsbG8=","digest":"md5-x"}}}"#,
                .invalidAttachment
            ),
            (
                #"{"_id":"a","_rev":"1-a","_attachments":{"x":{"data":"H4sIAAAAAAAAAw==","encoding":"gzip"}}}"#,
                .invalidAttachment
            ),
            (#"{"_id":"a","_rev":"1-a","_attachments":{"x":{"data":"aGVsbG8=","encoding":1}}}"#, .invalidAttachment),
            (
                #"""
                {"_id":"a","_rev":"1-a","_attachments":
                {"x":{"data":"aGVsbG8=","digest":"sha1-gOHUOBmIMoDCrMuGyaLWzf1hQTE="}}}
                """#,
                .invalidAttachment
            ),
        ])
    func refused(json: String, code: CofferError.Code) throws {
        let error = thrown { try database.putExistingRevision(json: Data(json.utf8)) }
        #expect(error?.code == code, "\(String(describing: error))")
        #expect(try database.lastSequenceNumber == 0)
        #expect(try database.documentCount == 0)
    }

    @Test("A foreign revision is refused with a digest longer than an index holds, and taken with one as long")
    func digestLength() throws {
        func put(_ count: Int) throws -> ExistingRevisionResult {
            let stub: JSONObject = [
                "stub": true, "digest": .string(String(repeating: "d", count: count)), "length": 5,
            ]
            return try database.putExistingRevision(
                ["_attachments": ["x": .object(stub)]], withID: "a", history: ids("1-\(count)"))
        }
        #expect(try put(200).revision.attachment(named: "x")?.digest.utf8.count == 200)
        #expect(thrown { try put(201) }?.code == .invalidAttachment)
        #expect(thrown { try put(0) }?.code == .invalidAttachment)
    }

    @Test("A foreign revision with parameters that contradict its properties is refused")
    func parameters() throws {
        func code(_ properties: JSONObject, _ id: String, _ history: [String]?) throws -> CofferError.Code? {
            let history = try history.map { try ids($0) }
            return thrown { try database.putExistingRevision(properties, withID: id, history: history) }?.code
        }
        #expect(try code(["_id": "b"], "a", ["1-a"]) == .invalidJSON)
        #expect(try code(["_rev": "1-b"], "a", ["1-a"]) == .invalidArgument)
        #expect(try code(["_revisions": ["start": 1, "ids": ["b"]]], "a", ["1-a"]) == .invalidArgument)
        #expect(try code([:], "a", []) == .invalidArgument)
        #expect(try code([:], "a", nil) == .invalidArgument)
        #expect(try code([:], "a", ["3-c", "1-a"]) == .invalidArgument)
        #expect(try code([:], "a", ["1-a", "1-a"]) == .invalidArgument)
        #expect(try code(["_y": 1], "a", ["1-a"]) == .invalidJSON)
        let kept = thrown {
            try database.putExistingRevision(["_deleted": false], withID: "a", history: ids("1-a"), isDeletion: true)
        }
        #expect(kept?.code == .invalidArgument)
        #expect(try code([:], String(repeating: "x", count: 901), ["1-a"]) == .invalidDocumentID)
        let content = Blob(data: Data("x".utf8))
        let unused = thrown {
            try database.putExistingRevision(
                [:], withID: "a", history: ids("1-a"), attachments: ["not there": content])
        }
        #expect(unused?.code == .invalidAttachment)
        let other = thrown {
            try database.putExistingRevision(
                ["_attachments": ["a": ["follows": true, "digest": "md5-XUFAKrxLKna5cZ2REBfFkg=="]]], withID: "a",
                history: ids("1-a"), attachments: ["a": content])
        }
        #expect(other?.code == .invalidAttachment)
        #expect(try database.lastSequenceNumber == 0)

        let properties: JSONObject = [
            "_id": "a", "_rev": "2-b", "_revisions": ["start": 2, "ids": ["b", "a"]], "_deleted": true, "n": 1,
        ]
        let result = try database.putExistingRevision(properties, withID: "a", history: ids("2-b", "1-a"))
        #expect(result.revision.isDeletion)
        #expect(try result.revision.properties == ["n": 1])
    }

    @Test("A foreign revision brings contents beside an MD5 that is theirs, or that is one of their packed form")
    func md5() throws {
        let content = Blob(data: Data("hello".utf8))
        for (id, entry) in [
            ("plain", ["digest": "md5-XUFAKrxLKna5cZ2REBfFkg=="]),
            ("packed", ["digest": "md5-ghPXQlvT1PDLLSvWCTiz0g==", "encoding": "gzip", "encoded_length": 25]),
        ] as [(String, JSONValue)] {
            let result = try database.putExistingRevision(
                ["_attachments": ["a": entry]], withID: id, history: ids("1-a"), attachments: ["a": content])
            let attachment = try #require(try result.revision.attachment(named: "a"))
            #expect(attachment.digest == "sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00=")
            #expect(try attachment.content == Data("hello".utf8))
        }
    }

    @Test("A foreign revision of the last generation there is can be taken, and not be changed")
    func lastGeneration() throws {
        let last = try put("9223372036854775807-z", "9223372036854775806-y", properties: ["n": 1])
        #expect(last.isCurrent)
        let draft = try last.revision.createRevision()
        #expect(thrown { try draft.save() }?.code == .invalidArgument)
        #expect(thrown { try database.document(withID: "doc").delete() }?.code == .invalidArgument)
        #expect(try database.document(withID: "doc").leafTexts == ["9223372036854775807-z"])
        _ = try put("1-a")
        #expect(try database.document(withID: "doc").leafTexts == ["9223372036854775807-z", "1-a"])
    }

    @Test("A foreign revision is told of as from a peer, once, and not when it was known")
    func notification() async throws {
        var changes = database.changes.makeAsyncIterator()
        for history in [["2-b", "1-a"], ["2-b", "1-a"], ["2-c", "1-a"]] {
            try await database.putExistingRevision([:], withID: "doc", history: ids(history))
        }
        let first = try #require(await changes.next()?.changes)
        let second = try #require(await changes.next()?.changes)
        #expect(first.map { $0.revisionID?.description } == ["2-b"])
        #expect(second.map { $0.revisionID?.description } == ["2-c"])
        #expect(first[0].isFromPeer && !first[0].isInConflict)
        #expect(second[0].isInConflict && second[0].isCurrentRevision)
    }

    @Test("A foreign revision that a validation refuses is a 403")
    func validation() throws {
        database.setValidation(named: "none of 3-c") { revision in
            if revision.isFromPeer, try revision["bad"] == true { try revision.reject("bad") }
        }
        #expect(thrown { try put("1-a", properties: ["bad": true]) }?.status == 403)
        #expect(try database.lastSequenceNumber == 0)
        _ = try put("1-a", properties: ["bad": false])
    }

    @Test("A foreign revision can be put by a task, in a transaction, and be rolled back with it")
    func transactions() async throws {
        let result = try await database.putExistingRevision(["n": 1], withID: "doc", history: ids("1-a"))
        #expect(result.isCurrent)
        let json = Data(#"{"_id":"doc","_rev":"2-b","_revisions":{"start":2,"ids":["b","a"]}}"#.utf8)
        #expect(try await database.putExistingRevision(json: json).revision.revisionID.generation == 2)
        try? await database.inTransaction { [database] in
            _ = try database.putExistingRevision([:], withID: "doc", history: ids("2-x", "1-a"))
            #expect(try database.document(withID: "doc").leafTexts == ["2-x", "2-b"])
            throw CancellationError()
        }
        #expect(try database.document(withID: "doc").leafTexts == ["2-b"])
        #expect(try database.contradictions() == [])
    }
}
