import Foundation
import Testing

/// Values of documents reached the terminal with C1 characters, which may be commands to it, and with those that reverse the
/// direction of writing: JSON escapes neither.
@Suite("What a terminal would act on")
struct TerminalTextTests {
    let work: Workspace
    private static let key = ["--key", "raw+file:key"]
    /// A CSI that turns the rest of the line red, DEL, and an override of the direction.
    private static let value = "a\u{9B}31m\u{7F}b\u{202E}c"
    private static let escaped = #"a\u009b31m\u007fb\u202ec"#
    static let commands = [
        ["get", "people.coffer", "robin\u{202E}"], ["query", "people.coffer"], ["export", "people.coffer"],
        ["get", "people.coffer", "robin\u{202E}", "--json"], ["query", "people.coffer", "--json"],
    ]

    init() throws {
        work = try Workspace()
        try work.makeStore()
        let put = try CofferProcess.run(
            ["put", "people.coffer", "robin\u{202E}"] + Self.key, in: work.folder,
            .init(input: Data(#"{"text":"\#(Self.value)"}"#.utf8)))
        try #require(put.status == 0, "\(put.errors)")
    }

    /// What a command shows on a terminal.
    private func shown(_ arguments: [String], until text: String) throws -> String {
        let terminal = try FakeTerminal()
        let outcome = try CofferProcess.run(
            arguments + Self.key, in: work.folder, .init(outputPath: terminal.path, terminal: terminal)
        ) { _ in try terminal.wait(for: text) }
        #expect(outcome.status == 0, "\(outcome.errors)")
        return terminal.shown
    }

    @Test("A terminal gets such characters in a value escaped, and with --raw as they are", arguments: commands)
    func values(command: [String]) throws {
        #expect(try shown(command, until: "}\r\n").contains(Self.escaped))
        #expect(try shown(command + ["--raw"], until: "}\r\n").contains(Self.value))
    }

    @Test("A file or pipe gets each value as it is", arguments: commands)
    func files(command: [String]) throws {
        let outcome = try CofferProcess.run(command + Self.key, in: work.folder)
        #expect(outcome.output.contains(command.contains("--json") ? "\u{202E}c" : Self.value))
        #expect(try work.shell("\"$coffer\" export people.coffer --key raw+file:key | cat").output.contains(Self.value))
    }

    @Test("A terminal gets an id that sets the direction of writing as a JSON string, and a file as it is")
    func ids() throws {
        #expect(try shown(["ls", "people.coffer"], until: "\r\n").contains(#""robin\u202e""#))
        #expect(try shown(["changes", "people.coffer"], until: "\r\n").contains(#""robin\u202e""#))
        #expect(try CofferProcess.run(["ls", "people.coffer"] + Self.key, in: work.folder).output == "robin\u{202E}\n")
    }

    @Test("An error on a terminal has such characters escaped")
    func errors() throws {
        let terminal = try FakeTerminal()
        let outcome = try CofferProcess.run(
            ["get", "people.coffer", "kim\u{202E}\u{9B}"] + Self.key, in: work.folder,
            .init(terminal: terminal, showsErrorsOnTerminal: true)
        ) { _ in try terminal.wait(for: "404") }
        #expect(outcome.status == 1)
        #expect(terminal.shown.contains(#"kim\u202e\u009b"#) && !terminal.shown.contains("\u{202E}"))
    }
}
