internal import Coffer
internal import Foundation

/// The work of ``Others`` with Coffer, in a process of its own.
struct CofferWork {
    static let argument = "--child-coffer"

    /// The child's side: does all of it and prints the times. False when `arguments` don't ask for it.
    static func runIfAsked(_ arguments: [String]) throws -> Bool {
        guard arguments.count == 4, arguments[0] == argument, let count = Int(arguments[3]) else { return false }
        let lines = try Data(contentsOf: URL(filePath: arguments[2])).split(separator: UInt8(ascii: "\n"))
        let documents = lines.compactMap { line -> DocumentSet.Document? in
            guard let tab = line.firstIndex(of: UInt8(ascii: "\t")) else { return nil }
            return DocumentSet.Document(
                id: String(decoding: line[..<tab], as: UTF8.self), json: Data(line[(tab + 1)...]))
        }
        let database = try Bench.openStore(named: "coffer", in: URL(filePath: arguments[1]))
        let work = CofferWork(database: database, documents: documents)
        try work.run(.insert) { try work.insert() }
        try work.run(.read) { try work.read() }
        try work.run(.list) { try work.list() }
        try work.run(.update) { try work.update() }
        let contents = Contents(count: count, byteCount: 1_000_000)
        try work.run(.write) { try work.write(contents) }
        try work.run(.readBack) { try work.readBack(contents) }
        try database.close()
        return true
    }

    let database: Database
    let documents: [DocumentSet.Document]

    private func run(_ work: Others.Work, _ body: () throws -> Void) throws {
        print("\(work.rawValue) \(try measure(body).time.seconds)")
    }

    private func insert() throws {
        for start in stride(from: 0, to: documents.count, by: 1_000) {
            try database.inTransaction {
                for document in documents[start..<start + 1_000] {
                    try database.save(json: document.json, withID: document.id)
                }
            }
        }
    }

    private func read() throws {
        var sum = 0
        for index in documents.indices {
            let id = documents[index * 7_919 % documents.count].id
            sum += try database.document(withID: id).currentRevision?.json.count ?? 0
        }
        try expect(sum == documents.reduce(0) { $0 + $1.json.count }, "other documents")
    }

    private func list() throws {
        var count = 0
        try database.allDocuments().forEach { count += try $0.json.isEmpty ? 0 : 1 }
        try expect(count == documents.count, "\(count) documents were listed")
    }

    private func update() throws {
        for start in stride(from: 0, to: documents.count / 10, by: 1_000) {
            try database.inTransaction {
                for document in documents[start..<start + 1_000] {
                    let current = try database.document(withID: document.id).currentRevision?.revisionID
                    let next = document.json.dropLast() + Data(#","version":2}"#.utf8)
                    try database.save(json: next, withID: document.id, replacing: current)
                }
            }
        }
    }

    private func write(_ contents: Contents) throws {
        try database.inTransaction {
            for (index, content) in contents.all.enumerated() {
                let draft = try database.document(withID: "file-\(index)").newRevision()
                draft.setAttachment(named: "content", contentType: "application/octet-stream", content: content)
                try draft.save()
            }
        }
    }

    private func readBack(_ contents: Contents) throws {
        for index in contents.all.indices {
            let attachment = try database["file-\(index)"]?.currentRevision?.attachment(named: "content")
            let content = try attachment?.content
            try expect(content?.count == contents.byteCount, "attachment \(index) isn't there")
        }
    }
}
