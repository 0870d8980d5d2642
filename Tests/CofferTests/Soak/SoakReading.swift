import Foundation

@testable import Coffer
import TestSupport

extension SoakActor {
    // MARK: Looking

    /// Reads what it owns in one of several ways, and compares it with the model.
    func look(_ action: SoakAction, _ database: Database, _ random: inout SeededNumbers) throws {
        switch action {
        case .read:
            guard let id = random.pick(model.documents.keys.sorted() + ["\(name)-nothing"]) else { return }
            try compare(id, in: database)
        case .list:
            var options = AllDocumentsOptions()
            options.idPrefix = "\(name)-"
            options.isDescending = random.isOne(in: 2)
            let rows = try database.allDocuments(options).all
            try compare(rows.map { ($0.document.documentID, try $0["n"]) }, by: "allDocuments")
        case .feed:
            try follow(database, &random)
        case .view:
            let rows = try SoakIndexes.view(in: database).rows(SoakIndexes.options(name)).all
            try compare(rows.map { ($0.documentID, try $0.decodeValue(Int.self)) }, by: "view")
        case .query:
            let rows = try database.documents(SoakIndexes.query(name)).all
            try compare(rows.map { ($0.document.documentID, try $0["n"]) }, by: "query")
        default:
            let count = try database.documentCount
            let own = model.documents.values.count { $0.expiration == nil && $0.current != nil }
            try soakExpect(count > own, "\(count) documents, and this actor alone has \(own)")
        }
    }

    /// The changes from some sequence on, in order.
    private func follow(_ database: Database, _ random: inout SeededNumbers) throws {
        let start = random.isOne(in: 2) ? 0 : random.below(max(1, try database.lastSequenceNumber))
        var last = start
        var seen: Set<String> = []
        for row in try database.changes(since: start).all {
            try soakExpect(row.sequence > last, "sequence \(row.sequence) after \(last)")
            last = row.sequence
            seen.insert(row.documentID)
        }
        guard start == 0 else { return }
        let missing = model.documents.filter { !seen.contains($0.key) && !$0.value.mayBeGone(by: Date()) }
        try soakExpect(missing.isEmpty, "changes leave out \(missing.keys.sorted())")
    }

    // MARK: Comparing

    /// Compares all that it owns.
    ///
    /// - Parameter openedAt: when the store was opened, which nobody else has now: what had expired by then is gone.
    func compareAll(in database: Database, openedAt: Date? = nil) throws {
        for id in model.documents.keys.sorted() { try compare(id, in: database, openedAt: openedAt) }
        for (id, number) in model.localDocuments {
            let found: Int? = try database.localDocument(withID: id)?["n"]
            try soakExpect(found == number, "local \(id) is \(String(describing: found)), not \(number)")
        }
        var options = AllDocumentsOptions()
        options.idPrefix = "\(name)-"
        options.includesDeleted = true
        for revision in try database.allDocuments(options).all {
            let id = revision.document.documentID
            try soakExpect(model.documents[id] != nil, "\(id) is there, and was purged or never acknowledged")
        }
    }

    /// Compares one document, all leaves and contents of it.
    func compare(_ id: String, in database: Database, openedAt: Date? = nil) throws {
        let leaves = try database.document(withID: id).leafRevisions
        guard let expected = model.documents[id] else {
            return try soakExpect(leaves.isEmpty, "\(id) is there, and was purged or never acknowledged")
        }
        guard !leaves.isEmpty else { return try noteGone(id) }
        if let openedAt {
            try soakExpect(
                !expected.mustBeGone(by: openedAt),
                "\(id) is there, and expired \(String(describing: expected.expiration)), before \(openedAt)")
        }
        let found = leaves.map(\.revisionID)
        try soakExpect(
            Set(found) == Set(expected.leaves.keys), "\(id) has \(found), not \(expected.leaves.keys.sorted())")
        try soakExpect(found[0] == expected.winner, "\(id): \(found[0]) wins, not \(expected.winner)")
        for leaf in leaves {
            let content = expected.leaves[leaf.revisionID] ?? nil
            try soakExpect(leaf.isDeletion == (content == nil), "\(id), \(leaf.revisionID): isDeletion is wrong")
            do {
                if let content { try compare(leaf, content) }
            } catch let error as CofferError
                where [.attachmentNotFound, .revisionNotFound].contains(error.code) && expected.mayBeGone(by: Date())
            {}
        }
    }

    private func compare(_ leaf: SavedRevision, _ content: SoakContent) throws {
        let place = "\(leaf.document.documentID), \(leaf.revisionID)"
        let number: Int? = try leaf["n"]
        let text: String? = try leaf["t"]
        try soakExpect(number == content.number, "\(place) holds \(String(describing: number)), not \(content)")
        try soakExpect(text == content.text, "\(place): the text of \(content.number) is another")
        let attachments = try leaf.attachments
        try soakExpect(
            Set(attachments.map(\.name)) == Set(content.attachments.keys),
            "\(place) has attachments \(attachments.map(\.name)), not \(content.attachments)")
        for attachment in attachments {
            guard let number = content.attachments[attachment.name] else { continue }
            let bytes = SoakContent.contents[number]
            let found =
                number % 2 == 0
                ? try attachment.content : try Self.readStream(try attachment.openContentStream())
            try soakExpect(found == bytes, "\(place): attachment \(attachment.name) has not content \(number)")
            if bytes.count > 1 {
                let end = try attachment.content(in: bytes.count - 1..<bytes.count)
                try soakExpect(end == bytes.suffix(1), "\(place): the end of \(attachment.name) is another")
            }
        }
        let blob = try leaf.blob(forKey: "blob")?.content
        try soakExpect(
            blob == content.blob.map { SoakContent.contents[$0] }, "\(place): the blob is not \(content)")
    }

    private static func readStream(_ stream: InputStream?) throws -> Data {
        guard let stream else { return Data() }
        stream.open()
        defer { stream.close() }
        var data = Data()
        var buffer = [UInt8](repeating: 0, count: 50_000)
        while case let count = stream.read(&buffer, maxLength: buffer.count), count != 0 {
            if count < 0 { throw stream.streamError ?? SoakMismatch("a stream failed and doesn't say why") }
            data += buffer[..<count]
        }
        return data
    }

    /// Compares what a list says of the documents that are not deleted.
    func compare(_ found: [(id: String, number: Int?)], by list: String) throws {
        let end = Date()
        var numbers: [String: Int?] = [:]
        for (id, number) in found {
            try soakExpect(numbers.updateValue(number, forKey: id) == nil, "\(list) has \(id) twice")
        }
        for (id, document) in model.documents {
            let expected = document.current?.number
            if let number = numbers.removeValue(forKey: id) {
                try soakExpect(
                    number == expected,
                    "\(list): \(id) is \(String(describing: number)), not \(String(describing: expected))")
            } else if expected != nil {
                try soakExpect(document.mayBeGone(by: end), "\(list) leaves out \(id)")
            }
        }
        try soakExpect(numbers.isEmpty, "\(list) has \(numbers.keys.sorted()), which are not there")
    }
}

/// The views and indexes of a soak's stores.
enum SoakIndexes {
    /// Each document by its owner. A database has forgotten the function each time it is opened.
    static func view(in database: Database) throws -> DatabaseView {
        let view = database.view(named: "by owner")
        if !view.hasMap {
            try view.setMap(version: "1") { revision, emit in
                if let owner = try revision["owner"] { emit(owner, try revision["n"] ?? .null) }
            }
        }
        return view
    }

    static func options(_ owner: String) -> ViewOptions {
        var options = ViewOptions()
        options.startKey = .string(owner)
        options.endKey = .string(owner)
        return options
    }

    static func query(_ owner: String) -> DocumentQuery {
        var query = DocumentQuery(where: Property("owner") == owner)
        query.order = [.descending("n")]
        return query
    }
}
