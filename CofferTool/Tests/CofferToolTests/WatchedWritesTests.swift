import Foundation
import Testing

private let canWatch = (try? Workspace().shell("strace -o /dev/null true").status) == 0

/// Every byte that the process hands to the system is looked at, also of files that are gone by its end.
@Suite("Every write of a process", .enabled(if: canWatch, "strace is missing, or may not watch"))
struct WatchedWritesTests {
    let work: Workspace

    init() throws { work = try Workspace() }

    private static let canary = "CANARY-8c1f02b76d"

    /// An unencrypted store in which the canary is everywhere: in short and long documents, and in contents.
    private func fill() throws {
        try work.write(Workspace.key, to: "key")
        try work.write(Data((0..<32).map { $0 + 100 }), to: "other-key")
        let text = String(repeating: "\(Self.canary) ", count: 5_000)
        try work.write(text, to: "long.txt")
        try work.coffer("create", "people.coffer", "--unencrypted")
        for id in ["a", "b", "c"] {
            try work.coffer("put", "people.coffer", id, input: #"{"\#(Self.canary)":"\#(Self.canary)"}"#)
        }
        try work.coffer("put", "people.coffer", "long", input: #"{"text":"\#(text)"}"#)
        try work.coffer("attach", "people.coffer", "a", "long.txt", "long.txt")
    }

    /// Runs a command, and returns how often the canary was in what the process wrote, and how many bytes that was.
    private func watch(_ command: String) throws -> (canaries: Int, byteCount: Int) {
        let calls = "write,pwrite64,writev,pwritev,pwritev2,sendfile,splice,copy_file_range"
        let outcome = try work.shell(
            "strace -f -xx -s 4000000 -e trace=\(calls) -o trace $coffer \(command) >/dev/null")
        #expect(outcome.status == 0, "\(command)")
        let trace = try String(contentsOf: work.folder.appending(path: "trace"), encoding: .utf8)
        let hex = Self.canary.utf8.map { "\\x" + String($0, radix: 16) }.joined()
        let written = trace.split(separator: "\n").reduce(0) { $0 + (Int($1.split(separator: "= ").last ?? "") ?? 0) }
        // None is cut short.
        #expect(!trace.contains("\"..."))
        return (trace.components(separatedBy: hex).count - 1, written)
    }

    @Test("The writes of a process that puts a store under a key, and then under another, hold nothing of its content")
    func encrypting() throws {
        try fill()
        let encrypting = try watch("encrypt people.coffer --new-key raw+file:key")
        #expect(encrypting.canaries == 0)
        #expect(encrypting.byteCount > 200_000)
        let changing = try watch("rekey people.coffer --key raw+file:key --new-key raw+file:other-key")
        #expect(changing.canaries == 0)
        #expect(changing.byteCount > 200_000)
        let saving = try watch("attach people.coffer b again.txt long.txt --key raw+file:other-key")
        #expect(saving.canaries == 0)
        // The same search finds all of it where it is to be readable again.
        let decrypting = try watch("decrypt people.coffer --yes-remove-encryption --key raw+file:other-key")
        #expect(decrypting.canaries > 5_000)
    }
}
