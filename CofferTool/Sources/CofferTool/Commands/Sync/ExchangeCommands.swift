#if Sync
internal import ArgumentParser
internal import Coffer
internal import CofferSync
internal import Foundation

struct PullCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "pull",
        abstract: "Pull a database from a server: CouchDB, Sync Gateway or coffer serve.",
        discussion: """
            Revisions come with their ids and histories, also conflicts, and everything in the store stays. Another \
            pull continues where the last one stopped, for whatever reason. A document that is refused doesn't stop \
            the others: a line on standard output names it, and the command ends with 3, as later ones do until it is \
            settled. Contents that an earlier pull left on the server come too, as far as this one may fetch them. ^C \
            ends it with 130, and fetched revisions stay.
            """
    )

    @OptionGroup var arguments: StoreArguments
    @OptionGroup var remote: ExchangeArguments

    @Flag(help: "Make the store if it doesn't exist. It is removed again if nothing was pulled.")
    var create = false

    @OptionGroup var new: NewStoreArguments

    @Option(
        help: ArgumentHelp("Fetch only documents that this filter of the server lets pass.", valueName: "design/name"))
    var filter: String?

    @Option(
        name: .customLong("filter-parameter"),
        help: ArgumentHelp("A parameter for the filter. Repeatable.", valueName: "name=value"))
    var filterParameters: [String] = []

    @Option(help: ArgumentHelp("Fetch only this channel of Sync Gateway. Repeatable.", valueName: "name"))
    var channel: [String] = []

    @Flag(help: "Leave the contents of attachments on the server. coffer download, or a later pull, fetches them.")
    var noAttachments = false

    @Option(
        name: .customLong("max-attachment"),
        help: ArgumentHelp("Leave larger contents of attachments on the server.", valueName: "bytes"))
    var attachmentByteLimit: Int?

    var textSources: [KeySource] {
        get throws(Failure) { try remote.connection.namedSources() }
    }

    func run(_ console: Console) throws {
        let place = try remote.place()
        let path = try arguments.path()
        guard (attachmentByteLimit ?? 1) > 0 else { throw Failure.usage("--max-attachment must be more than 0") }
        guard create || !(new.unencrypted || new.keyedNames || new.storage != nil) else {
            throw Failure.usage("--unencrypted, --keyed-names and --storage are for --create")
        }
        var options = try remote.options(arguments)
        options.filter = filter
        options.downloadsAttachments = !noAttachments
        options.attachmentByteLimit = attachmentByteLimit
        options.filterParameters = try parameters()
        options.channels = channel.isEmpty ? nil : channel
        let manager = try Manager(directory: path.folder)
        let isNew = create && !manager.databaseExists(named: path.databaseName)
        if isNew { try path.checkFolder() }
        let making = isNew ? try new.options(arguments, console) : nil
        let pulling = options
        try arguments.withDatabase(readOnly: false, making: making) { database in
            let run = try ReplicationRun("pull", remote, database) {
                try Replication(pull: place, into: database, options: pulling)
            }
            do {
                try run.run(arguments.store, fetchesContents: !noAttachments, console)
            } catch {
                if isNew, (try? database.lastSequenceNumber) == 0 { try? database.delete() }
                throw error
            }
        }
    }

    private func parameters() throws(Failure) -> JSONObject {
        var parameters: JSONObject = [:]
        for text in filterParameters {
            let sides = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard sides.count == 2, !sides[0].isEmpty else {
                throw .usage("\(Console.printable(text)): not a name, = and a value")
            }
            parameters[sides[0]] = .string(sides[1])
        }
        return parameters
    }
}

struct PushCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Push the store to a database on a server: CouchDB, Sync Gateway or coffer serve.",
        discussion: """
            Revisions go with their ids and histories, also conflicts; the server gets them unencrypted, apart from \
            https on the way. Another push continues where the last one stopped, for whatever reason. A document that \
            the server refuses doesn't stop the others: a line on standard output names it, and the command ends with \
            3, as later ones do until it is settled. ^C ends it with 130, and revisions that the server has stay \
            there.
            """
    )

    @OptionGroup var arguments: StoreArguments
    @OptionGroup var remote: ExchangeArguments

    @Flag(help: "Make the server's database if it doesn't exist.")
    var createTarget = false

    var textSources: [KeySource] {
        get throws(Failure) { try remote.connection.namedSources() }
    }

    func run(_ console: Console) throws {
        let place = try remote.place()
        _ = try arguments.path()
        var options = try remote.options(arguments)
        options.createsTarget = createTarget
        let pushing = options
        try arguments.withDatabase(readOnly: false) { database in
            try ReplicationRun("push", remote, database) {
                try Replication(push: database, to: place, options: pushing)
            }.run(arguments.store, console)
        }
    }
}

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
