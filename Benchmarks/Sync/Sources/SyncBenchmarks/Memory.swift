import Coffer
import CofferSync
import Foundation

/// What a 1 GiB attachment costs in memory on both sides of a pull and of a push, each side a process of its own.
struct Memory {
    let directory: URL
    let byteCount: Int

    func run() throws {
        let idle = try peaks(of: "idle", byteCount: 1)
        for way in ["push", "pull"] {
            let busy = try peaks(of: way, byteCount: byteCount)
            for (side, more) in [("client", busy.client - idle.client), ("server", busy.server - idle.server)] {
                print(
                    "| memory, \(way) of \(byteCount >> 20) MiB, \(side) | \(more >> 20) MiB more than with one byte | "
                        + "64 | \(more >> 20 <= 64 ? "reached" : "not reached") |")
            }
        }
    }

    /// The peaks of a client and of a server that exchange one attachment.
    private func peaks(of way: String, byteCount: Int) throws -> (client: Int, server: Int) {
        let folder = directory.appending(path: "memory-\(way)-\(byteCount)")
        let server = Child(["--child-serve", folder.path, way, "\(byteCount)"])
        let url = try server.line()
        let client = Child(["--child-client", folder.path, way, "\(byteCount)", url])
        guard let peak = Int(try client.line()) else { throw Failure("the client failed") }
        server.closeInput()
        guard let serverPeak = Int(try server.line()) else { throw Failure("the server failed") }
        try FileManager.default.removeItem(at: folder)
        return (peak, serverPeak)
    }

    // MARK: The children

    /// False when the arguments name none.
    static func runAsChild(_ arguments: [String]) async throws -> Bool {
        guard arguments.count >= 4, let byteCount = Int(arguments[3]) else { return false }
        let way = arguments[2]
        switch arguments[0] {
        case "--child-serve":
            let work = try await Work(directory: URL(filePath: arguments[1] + "/server"), serves: true)
            if way != "push" { try await write(byteCount, into: try await work.database("db")) }
            print(work.url("db").absoluteString)
            fflush(nil)
            _ = readLine()
            print(try peakMemory())
        case "--child-client":
            let work = try await Work(directory: URL(filePath: arguments[1] + "/client"), serves: false)
            guard let url = URL(string: arguments[4]) else { return false }
            let database = try await work.database("db")
            var options = ReplicationOptions()
            options.createsTarget = way == "push"
            if way == "push" { try await write(byteCount, into: database) }
            let replication =
                way == "push"
                ? try Replication(push: database, to: url, options: options)
                : try Replication(pull: url, into: database, options: options)
            let status = try await replication.run()
            guard status.failedCount == 0, status.completedCount == 1 else { throw Failure("it did not come across") }
            print(try peakMemory())
        default: return false
        }
        fflush(nil)
        return true
    }

    /// Attaches a file of so many bytes.
    private static func write(_ byteCount: Int, into database: Database) async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        let piece = Data((0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        for offset in stride(from: 0, to: byteCount, by: piece.count) {
            try handle.write(contentsOf: piece.prefix(byteCount - offset))
        }
        try handle.close()
        let draft = try database.document(withID: "large").newRevision()
        try draft.setAttachment(named: "a", contentType: "application/octet-stream", contentsOf: file)
        try await draft.save()
    }

    private static func peakMemory() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }),
            let kibibytes = line.split(whereSeparator: { !$0.isNumber }).first.flatMap({ Int($0) })
        else { throw Failure("/proc does not say how much memory was used") }
        return kibibytes << 10
    }
}

/// This program again, with other arguments.
private final class Child {
    private let process = Process()
    private let (input, output) = (Pipe(), Pipe())
    private var rest = Data()

    init(_ arguments: [String]) {
        process.executableURL = Bundle.main.executableURL
        process.arguments = arguments
        process.standardInput = input
        process.standardOutput = output
    }

    /// The next line that it writes.
    func line() throws -> String {
        if !process.isRunning, process.processIdentifier == 0 { try process.run() }
        while true {
            if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                defer { rest = Data(rest[(end + 1)...]) }
                return String(decoding: rest[..<end], as: UTF8.self)
            }
            let piece = output.fileHandleForReading.availableData
            guard !piece.isEmpty else { throw Failure("a child ended too early") }
            rest += piece
        }
    }

    func closeInput() { try? input.fileHandleForWriting.close() }
}
