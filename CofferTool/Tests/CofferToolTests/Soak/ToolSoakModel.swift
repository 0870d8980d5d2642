import Foundation

/// The contents of attachments. Everything follows from their numbers, so that the model stays small.
enum ToolSoakContent {
    /// Contents below this number are few, so that workers share them: one is removed by one while another attaches it again.
    static let sharedCount = 14

    /// Random bytes that contents are cut from.
    static let pool: Data = {
        var numbers = SeededNumbers(seed: 1)
        return (0..<1_100_000).map { _ in numbers.next() }.withUnsafeBytes { Data($0) }
    }()

    static func byteCount(_ number: Int) -> Int {
        let counts = [0, 1, 300, 16_384, 16_385, 130_000, 900_000]
        // A few of the large ones, and a compaction is due: 16 MiB make it worth while.
        return number < sharedCount ? counts[number % counts.count] : 700_000 + number &* 7_919 % 5_300_000
    }

    static func bytes(_ number: Int) -> Data {
        let start = number % 1_000
        let head = withUnsafeBytes(of: UInt64(number).littleEndian) { Data($0) }
        return (head + pool[start..<start + byteCount(number)]).prefix(byteCount(number))
    }
}

/// What must be there of one document.
struct ToolSoakDocument: Equatable, Sendable {
    /// What its body follows from; nil where a command made the document without one.
    var number: Int?
    /// By the attachments' names: the number of their content.
    var attachments: [String: Int] = [:]
    /// When it is purged by itself. Its owner does nothing more to such a document.
    var expiration: Date?

    static func text(_ number: Int) -> String {
        String(repeating: "soak", count: [0, 10, 50, 200, 2_000, 25_000][number % 6])
    }

    /// The body as it is given to the tool, with the id where one is to be in it.
    static func json(_ number: Int, owner: String, id: String? = nil) -> String {
        (id.map { #"{"_id":"\#($0)","# } ?? "{") + #""owner":"\#(owner)","n":\#(number),"t":"\#(text(number))"}"#
    }

    /// What is wrong with the document that a command wrote; nil if nothing is.
    func difference(from object: [String: Any]) -> String? {
        let found = object["n"] as? Int
        if found != number { return "it holds \(String(describing: found)), not \(self)" }
        if object["t"] as? String != number.map(Self.text) { return "the text of \(self) is another" }
        let stubs = object["_attachments"] as? [String: [String: Any]] ?? [:]
        let lengths = stubs.mapValues { $0["length"] as? Int }
        let expected = attachments.mapValues { Optional(ToolSoakContent.byteCount($0)) }
        return lengths == expected ? nil : "it has attachments \(lengths), not \(attachments), which are \(expected)"
    }

    func mayBeGone(by date: Date) -> Bool { expiration.map { $0 <= date.addingTimeInterval(0.002) } ?? false }

    /// Whether a store that a process opened for writing after `date` must not have it any more.
    func mustBeGone(by date: Date) -> Bool { expiration.map { $0 <= date.addingTimeInterval(-0.002) } ?? false }
}

/// What must be there of everything that one worker wrote. Nobody else writes to it, so it is exact.
struct ToolSoakModel: Sendable {
    private(set) var documents: [String: ToolSoakDocument] = [:]

    /// The documents that won't expire: those that their owner may change.
    var lasting: [String] { documents.filter { $0.value.expiration == nil }.keys.sorted() }

    var documentCount: Int { documents.count }

    /// Each attachment of these.
    var attachments: [(id: String, name: String, content: Int)] {
        lasting.flatMap { id in
            (documents[id]?.attachments ?? [:]).sorted { $0.key < $1.key }.map { (id, $0.key, $0.value) }
        }
    }

    subscript(id: String) -> ToolSoakDocument? { documents[id] }

    // MARK: Noting what was acknowledged

    mutating func notePut(_ id: String, _ number: Int) { documents[id, default: .init()].number = number }

    mutating func noteAttached(_ id: String, _ name: String, _ content: Int) {
        documents[id, default: .init()].attachments[name] = content
    }

    mutating func noteDetached(_ id: String, _ name: String) { documents[id]?.attachments[name] = nil }

    mutating func noteGone(_ id: String) { documents[id] = nil }

    mutating func noteExpiration(of id: String, _ date: Date) { documents[id]?.expiration = date }

    // MARK: Comparing

    /// Compares all documents of one owner with all that a command wrote of them.
    ///
    /// - Parameter openedAt: when a process began that opened the store for writing before; what had expired by then is gone.
    mutating func compare(_ found: [String: [String: Any]], openedAt: Date? = nil) throws {
        let now = Date()
        for (id, document) in documents {
            guard let object = found[id] else {
                try toolSoakExpect(document.mayBeGone(by: now), "\(id) is missing, and was \(document)")
                documents[id] = nil
                continue
            }
            if let openedAt {
                try toolSoakExpect(!document.mustBeGone(by: openedAt), "\(id) is there, and expired: \(document)")
            }
            if let difference = document.difference(from: object) { throw ToolSoakMismatch("\(id): \(difference)") }
        }
        for id in found.keys where documents[id] == nil {
            throw ToolSoakMismatch("\(id) is there, and was removed or never acknowledged")
        }
    }

    /// Compares the ids that a command listed. Of what expires it may have any.
    func compare(ids: Set<String>, by list: String) throws {
        let missing = Set(lasting).subtracting(ids)
        let strange = ids.subtracting(documents.keys)
        try toolSoakExpect(missing.isEmpty, "\(list) leaves out \(missing.sorted().prefix(20))")
        try toolSoakExpect(strange.isEmpty, "\(list) has \(strange.sorted().prefix(20)), which must not be there")
    }
}
