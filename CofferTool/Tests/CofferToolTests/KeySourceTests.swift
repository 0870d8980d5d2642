import CofferKeys
import Testing

@testable import CofferTool

@Suite("Key sources of the command")
struct KeySourceTests {
    @Test("The terminal is a source of keys, beside all that CofferKeys knows")
    func origins() throws {
        #expect(try KeySource("prompt") == KeySource(origin: .prompt))
        #expect(try KeySource("hex+prompt") == KeySource(encoding: .hex, origin: .prompt))
        #expect(try KeySource("raw+file:k") == KeySource(encoding: .raw, origin: .named(.file("k", as: .raw))))
    }

    @Test(
        "An argument that is no key source is refused without being repeated",
        arguments: ["", "hunter2", "pass:hunter2", "prompt:hunter2", "hex+hunter2", "credential:", "hex+hex+prompt"])
    func refusals(text: String) {
        let failure = #expect(throws: Failure.self) { try KeySource(text) }
        #expect(failure?.exit == .usage)
        #expect(failure?.status == 400)
        #expect(failure?.message.contains("hunter2") == false)
        #expect(failure?.hint?.contains("hunter2") == false)
        #expect(failure?.hint?.contains("prompt, file:PATH") == true)
    }

    @Test("Only stdin and fd:0 take up standard input")
    func standardInput() throws {
        #expect(try KeySource("stdin").usesStandardInput)
        #expect(try KeySource("raw+fd:0").usesStandardInput)
        #expect(try !KeySource("fd:3").usesStandardInput)
        #expect(try !KeySource("prompt").usesStandardInput)
    }
}
