import ArgumentParser
import Testing

@testable import CofferTool

@Suite("The command line")
struct CommandLineTests {
    @Test("the command is called coffer")
    func name() {
        #expect(CofferCommand.configuration.commandName == "coffer")
    }
}
