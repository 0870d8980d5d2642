#if Sync
internal import ArgumentParser
internal import Coffer
internal import CofferSync
internal import Foundation

/// What the commands that replicate have in common.
struct ExchangeArguments: ParsableArguments {
    @Argument(help: "The database on the server, such as https://example.com/people.")
    var url: String

    @Flag(help: "Wait for further changes after everything is exchanged, until ^C.")
    var continuous = false

    @Option(
        name: .customLong("document-id"),
        help: ArgumentHelp("Exchange only this document. Repeatable.", valueName: "id"))
    var documentIDs: [String] = []

    @Flag(help: "Only list documents that were refused for good and are not settled, without asking a server.")
    var failed = false

    @Flag(help: "Retry documents that were refused for good.")
    var retryFailed = false

    @OptionGroup var connection: ConnectionArguments

    func place() throws(Failure) -> URL {
        guard !failed || !(continuous || retryFailed) else {
            throw .usage("--failed can't be used with --continuous or --retry-failed")
        }
        return try connection.place(url)
    }

    /// What the arguments say that both directions know. Asks for what has to be typed.
    func options(_ arguments: StoreArguments) throws(Failure) -> ReplicationOptions {
        // Without a server there is nobody to say a password to.
        var options = failed ? ReplicationOptions() : try connection.options(url, arguments)
        options.isContinuous = continuous
        options.documentIDs = documentIDs.isEmpty ? nil : documentIDs
        options.retriesRefused = retryFailed
        return options
    }
}
#endif
