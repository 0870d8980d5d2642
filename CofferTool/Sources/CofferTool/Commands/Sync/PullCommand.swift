#if Sync
internal import ArgumentParser
internal import Coffer
internal import CofferSync

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
#endif
