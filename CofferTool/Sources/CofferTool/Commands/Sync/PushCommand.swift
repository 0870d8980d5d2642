#if Sync
internal import ArgumentParser
internal import Coffer
internal import CofferSync

struct PushCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Push the store to a database on a server: CouchDB, Sync Gateway or coffer serve.",
        discussion: """
            Revisions go with their ids and histories, conflicts too; the server gets them as they are, not encrypted but for \
            https on the way. Another push goes on where the last one stopped, whatever stopped it. A document that the \
            server refuses keeps no other from going: a line on standard output names it, and the command ends with 3, as the \
            next ones do until it is settled. ^C ends it with 130; what the server has stays there.
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
#endif
