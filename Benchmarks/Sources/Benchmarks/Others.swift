internal import Foundation

/// A program that does the work of ``Others`` with something.
///
/// It is called with the command's arguments, a new directory, a file of documents and how many attachments of 1 MB there are
/// to be. A line of the file is an id, a tab and JSON. It prints a line for each work that it can do: the work's name, a
/// space, and how many seconds it took.
struct Contender {
    let name: String
    let command: Command

    init(_ name: String, _ program: URL?, _ arguments: [String]) {
        self.name = name
        command = Command(program, arguments)
    }

    static func grdb(_ program: URL) -> Contender { Contender("GRDB on SQLite, not encrypted", program, []) }

    static func python(_ python: URL, script: URL) -> [Contender] {
        [
            Contender("SQLCipher from Python", python, [script.path, "sqlcipher"]),
            Contender("files encrypted by Python's cryptography", python, [script.path, "files"]),
        ]
    }
}

/// What the same work takes with something else, and with Coffer in the same round.
struct OtherRow: Encodable {
    let work: String
    let with: String
    /// One per round.
    let seconds: [Double]
    let ownSeconds: [Double]
    /// How many times as fast Coffer is: the median of all rounds.
    let ratio: Double
    let spread: [Double]

    init(work: String, with: String, seconds: [Double], ownSeconds: [Double]) {
        self.work = work
        self.with = with
        self.seconds = seconds
        self.ownSeconds = ownSeconds
        let ratios = zip(seconds, ownSeconds).map { $0 / $1 }
        ratio = ratios.median
        spread = [ratios.min() ?? 0, ratios.max() ?? 0]
    }
}

/// What a user would pick instead, doing the same.
struct Others {
    private let bench: Bench

    init(_ bench: Bench) { self.bench = bench }

    static let explanation = """
        documents of 500 bytes with random ids, synchronous=FULL, 1,000 a transaction, a cache of 64 MB, JSON bytes; attachments \
        of 1 MB, durable in the end: blobs of a table with SQLite, one AES-256-GCM each in a file. Each in a process of its own. \
        What is updated is replaced there, and keeps its history with Coffer, which also digests each attachment twice
        """

    /// A round is each of them once, and Coffer.
    func measure(_ contenders: [Contender]) throws -> [OtherRow] {
        let set = try bench.documents(isInOrder: false)
        let file = bench.directory.appending(path: "documents.tsv")
        var lines = Data()
        for document in set.all { lines += Data("\(document.id)\t".utf8) + document.json + Data("\n".utf8) }
        try lines.write(to: file)

        let own = Contender("Coffer", Bundle.main.executableURL, [CofferWork.argument])
        var seconds: [String: [String: [Double]]] = [:]
        for round in 0..<bench.size(3, quick: 2) {
            let all = [own] + contenders
            for contender in round.isMultiple(of: 2) ? all : all.reversed() {
                bench.say("\(contender.name) …")
                for (work, time) in try run(contender, file) {
                    seconds[contender.name, default: [:]][work, default: []].append(time)
                }
            }
        }
        return Work.allCases.flatMap { work in
            contenders.compactMap { contender in
                guard let others = seconds[contender.name]?[work.rawValue], let own = seconds[own.name]?[work.rawValue]
                else { return nil }
                return OtherRow(
                    work: title(of: work, documentCount: set.all.count), with: contender.name, seconds: others,
                    ownSeconds: own)
            }
        }
    }

    private var attachmentCount: Int { bench.size(200, quick: 30) }

    private func title(of work: Work, documentCount: Int) -> String {
        switch work {
        case .insert: "insert \(documentCount) documents"
        case .read: "read them at random"
        case .list: "list them in order"
        case .update: "update \(documentCount / 10) of them"
        case .write: "write \(attachmentCount) × 1 MB"
        case .readBack: "read \(attachmentCount) × 1 MB"
        }
    }

    private func run(_ contender: Contender, _ file: URL) throws -> [(String, Double)] {
        let directory = bench.directory.appending(path: bench.newName("other"), directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try bench.settle()
        let output = try contender.command.adding([directory.path, file.path, "\(attachmentCount)"]).run()
        return try output.split(separator: "\n").map { line in
            let words = line.split(separator: " ")
            guard words.count == 2, Work(rawValue: String(words[0])) != nil, let time = Double(words[1]) else {
                throw Failure("\(contender.name) printed \(line)")
            }
            return (String(words[0]), time)
        }
    }

    enum Work: String, CaseIterable {
        case insert, read, list, update
        case write = "write-attachments"
        case readBack = "read-attachments"
    }
}
