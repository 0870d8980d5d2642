import ArgumentParser

/// The command `coffer`.
@main
struct CofferCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "coffer",
        abstract: "Keep JSON documents in encrypted stores.",
        version: "1.0.0-dev"
    )
}
