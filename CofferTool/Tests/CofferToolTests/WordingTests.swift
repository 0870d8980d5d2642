import Foundation
import Testing

@testable import CofferTool

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite("What the command says about a command line")
struct WordingTests {
    @Test(
        "A mistyped command is named, with the one that was probably meant",
        arguments: [
            (["gett", "x"], "coffer gett", "did you mean coffer get? "),
            (["exprot", "x", "--json"], "coffer exprot", "did you mean coffer export? "),
            (["key", "lst", "x"], "coffer key lst", "did you mean coffer key list? "),
            (["index", "udpate"], "coffer index udpate", "did you mean coffer index update? "),
            (["help", "rotat"], "coffer rotat", "did you mean coffer rotate? "),
            (["frobnicate"], "coffer frobnicate", ""), (["rotate-par"], "coffer rotate-par", ""),
        ])
    func mistyped(line: [String], command: String, meant: String) throws {
        let outcome = try CofferProcess.run(line.filter { $0 != "--json" } + ["--json"], in: Workspace().folder)
        #expect(outcome.status == 64)
        #expect(try outcome.failure["message"] as? String == "there is no command \(command)")
        let group = command.split(separator: " ").dropLast().joined(separator: " ")
        #expect(try outcome.failure["hint"] as? String == "\(meant)\(group) --help lists the commands")
    }

    @Test("Other mistakes in a command line are said as before, and begin with a small letter")
    func otherMistakes() throws {
        let work = try Workspace()
        #expect(try work.coffer("get", "x").errors.hasPrefix("coffer: error: missing expected argument '<id>'\n"))
        #expect(try work.coffer("get", "a.coffer", "b", "c").errors.contains("nexpected argument"))
        #expect(try work.coffer("--verbos").errors.hasPrefix("coffer: error: unknown option '--verbos'"))
        #expect(try work.coffer("help", "get").status == 0)
    }

    @Test("A usage line fits on a terminal of 80 columns", arguments: MatrixCommand.all)
    func usageLines(command: MatrixCommand) throws {
        let words = command.name.split(separator: " ").map(String.init)
        let help = try CofferProcess.run(words + ["--help"], in: Workspace().folder)
        let usage = help.output.split(separator: "\n", omittingEmptySubsequences: false)
            .drop { !$0.hasPrefix("USAGE: ") }.prefix { !$0.isEmpty }
        #expect(!usage.isEmpty && usage.allSatisfy { $0.count <= 80 }, "\(usage)")
    }

    @Test("An error calls a store as the command line does, and says once that another process has it open")
    func storeNames() throws {
        let work = try Workspace()
        try work.makeStore()
        let missing = try work.coffer("ls", "sub/../gone.coffer", "--key", "raw+file:key")
        #expect(missing.errors.hasPrefix("coffer: error: sub/../gone.coffer: database not found (404)\n"))
        #expect(try work.coffer("ls", "people.coffer").errors.hasPrefix("coffer: error: people.coffer: key required"))
        let descriptor = open(work.folder.path + "/people.coffer", O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        #expect(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        let busy = try work.coffer("ls", "people.coffer", "--key", "raw+file:key")
        #expect(
            busy.errors == """
                coffer: error: people.coffer: busy: another process has the store open (503)
                coffer: hint: try again when it is done

                """)
    }
}
