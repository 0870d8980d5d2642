internal import ArgumentParser
internal import Foundation
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Writes what a run of `coffer rotate` does to a file that lasts: before a store is changed that it is begun, and after it what
/// became of it. Safe from any thread.
final class ReceiptLog: Sendable {
    /// This run.
    let run: String
    private let file: Mutex<ReceiptFile>

    /// - Parameters:
    ///   - path: of the file.
    ///   - resumes: whether this run goes on with the last rotation.
    ///   - labels: what the operator wants each run to say.
    /// - Throws: as `ReceiptFile`.
    init(path: String, resumes: Bool, labels: [String]) throws(Failure) {
        var file = try ReceiptFile(appendingTo: path)
        run = UUID().uuidString.lowercased()
        let rotation = resumes ? file.history.rotation ?? run : run
        var line = Self.line("run", run)
        line.add("rotation", rotation)
        line.add("host", Self.hostName)
        line.add("user", NSUserName())
        line.add("uid", Int(getuid()))
        line.add("tool", CofferCommand.configuration.version)
        line.add("labels", labels)
        try file.append(line)
        self.file = Mutex(file)
    }

    private static func line(_ type: String, _ run: String) -> JSONLine {
        var line = JSONLine(type: type)
        line.add("run", run)
        line.add("time", Date().ISO8601Format(.init(includingFractionalSeconds: true)))
        return line
    }

    private static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&name, name.count - 1) == 0 else { return "" }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// The SHA-256 of the last line.
    var last: String { file.withLock { $0.chain.last } }

    /// What its lines come to.
    var history: ReceiptHistory { file.withLock { $0.history } }

    /// Says that a store is about to be changed. When this returns, the disk has it.
    ///
    /// - Throws: where that can't be written. The store is not to be changed then.
    func begin(_ store: StoreBeginning) throws(Failure) {
        try file.withLock { (file) throws(Failure) in
            if let former = file.history.unfinishedRun(of: store.store, at: store.generation) {
                var line = Self.line("done", run)
                line.add("path", store.path)
                line.add("outcome", "changed")
                line.add("uuid", store.uuid)
                line.add("generation", store.generation)
                line.add("completes", former)
                try file.append(line)
            }
            var line = Self.line("begun", run)
            line.add("path", store.path)
            line.add("uuid", store.uuid)
            if let uuid = store.databaseUUID { line.add("databaseUUID", uuid) }
            line.add("generation", store.generation)
            try file.append(line)
        }
    }

    /// Says what became of a store.
    func finish(_ report: RotationReport) throws(Failure) {
        // It may come from a process of another user's.
        guard !report.members.utf8.contains(UInt8(ascii: "\n")),
            (try? JSONSerialization.jsonObject(with: Data("{\(report.members)}".utf8))) is [String: Any]
        else { throw Failure.usage("a malformed report") }
        try file.withLock { (file) throws(Failure) in
            var line = Self.line("done", run)
            line.add(members: report.members)
            if report.kind == .wasRotated || report.kind == .differs, let store = report.store,
                let former = file.history.unfinishedRun(of: store, at: report.generation ?? 0)
            {
                line.add("completes", former)
            }
            try file.append(line)
        }
    }

    /// Says that the run has come to its end.
    func end(_ summary: RotationRun.Summary) throws(Failure) {
        var line = Self.line("end", run)
        summary.add(to: &line)
        try file.withLock { (file) throws(Failure) in try file.append(line) }
    }
}
