internal import Coffer
internal import Foundation

/// Work on a store in a process of its own, whose memory says what the work costs.
enum Child: String, CaseIterable {
    /// Opens the store and saves a document with a short attachment.
    case open = "--child-open"
    case streamIn = "--child-stream-in"
    case streamOut = "--child-stream-out"
    case readRanges = "--child-read-ranges"
    case listDocuments = "--child-list"
    /// To the same one.
    case changeKey = "--child-change-key"
    /// Opens many stores, whose names begin with this one.
    case openMany = "--child-open-many"

    /// The greatest resident set of a new process that does this work, in bytes.
    ///
    /// - Parameter byteCount: of the large attachment, where the work is about one; how many stores, where it is about many.
    func peakMemory(store: String, in directory: URL, byteCount: Int = 0) throws -> Int {
        let output = try Command(Bundle.main.executableURL, [rawValue, directory.path, store, "\(byteCount)"]).run()
        guard let peak = Int(output.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw Failure("\(rawValue) says no size: \(output)")
        }
        return peak
    }

    /// The child's side: does the work that `arguments` name and prints the peak. False when they name none.
    static func runIfAsked(_ arguments: [String]) throws -> Bool {
        guard arguments.count == 4, let work = Child(rawValue: arguments[0]), let byteCount = Int(arguments[3]) else {
            return false
        }
        let (name, directory) = (arguments[2], URL(filePath: arguments[1]))
        if work == .openMany {
            try IdleDatabases.open(byteCount, named: name, in: directory)
        } else {
            try work.run(on: Bench.openStore(named: name, in: directory), byteCount)
        }
        print(try OwnProcess.peakMemory())
        return true
    }

    private func run(on database: Database, _ byteCount: Int) throws {
        switch self {
        case .open:
            let draft = try database.createDocument().newRevision()
            draft.setAttachment(named: "short", contentType: nil, content: Data("short".utf8))
            try draft.save()
        case .streamIn: try LargeAttachment.streamIn(to: database, byteCount)
        case .streamOut: try LargeAttachment.streamOut(of: database, byteCount)
        case .readRanges: try LargeAttachment.readRanges(of: database, byteCount)
        case .listDocuments:
            var count = 0
            try database.allDocuments().forEach { count += try $0.json.isEmpty ? 0 : 1 }
            try expect(count == database.documentCount, "\(count) documents were listed")
        case .changeKey: try database.changeEncryptionKey(to: Bench.key())
        case .openMany: break
        }
        try database.close()
    }
}

/// Another program.
struct Command {
    private let program: URL?
    private let arguments: [String]

    init(_ program: URL?, _ arguments: [String]) {
        self.program = program
        self.arguments = arguments
    }

    func adding(_ more: [String]) -> Command { Command(program, arguments + more) }

    /// What it wrote to its standard output.
    func run() throws -> String {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        try expect(
            process.terminationStatus == 0, "\(program?.lastPathComponent ?? "?") \(arguments.first ?? "") failed")
        return String(decoding: data, as: UTF8.self)
    }
}
