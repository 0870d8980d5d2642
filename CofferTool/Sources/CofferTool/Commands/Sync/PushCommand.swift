#if Sync
internal import ArgumentParser
internal import Coffer
internal import CofferSync

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
#endif
