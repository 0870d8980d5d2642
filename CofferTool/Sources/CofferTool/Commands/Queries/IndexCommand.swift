internal import ArgumentParser
internal import Coffer

/// `coffer index`: indexes over properties, which queries use.
struct IndexCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "index",
        abstract: "Add, list, update or remove indexes over properties.",
        discussion: """
            An index finds documents by its properties, from the first on: by equal values, and by a range of the next \
            property. With tags[] it has an entry for each element of that list, and finds documents by any of them. \
            The store keeps it, encrypted like everything else.
            """,
        subcommands: [
            IndexAddCommand.self, IndexListCommand.self, IndexUpdateCommand.self, IndexRemoveCommand.self,
        ]
    )

    func run() throws {
        throw Failure.usage("there is no command after index", hint: "coffer index --help lists them")
    }
}

struct IndexAddCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Declare an index over properties, and fill it.",
        discussion: "It replaces an index of that name over other properties.")

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The name of the index.")
    var name: String

    @Argument(help: ArgumentHelp("The properties, such as address.city, the most important first.", valueName: "path"))
    var paths: [String]

    func run(_ console: Console) throws {
        let index = try arguments.withDatabase(readOnly: false) { database in
            try database.createIndex(named: name, on: paths.map { PropertyPath($0) })
            try database.updateIndexes()
            return try database.indexes.first { $0.name.utf8.elementsEqual(name.utf8) }
        }
        guard let index else { throw Failure.missingIndex(name) }
        try console.printResult(console.isJSON ? index.json : index.text)
    }
}

struct IndexListCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the indexes, with their properties and how many entries they have.")

    @OptionGroup var arguments: StoreArguments

    func run(_ console: Console) throws {
        let indexes = try arguments.withDatabase(readOnly: true) { database in try database.indexes }
        for index in indexes { try console.printResult(console.isJSON ? index.json : index.text) }
    }
}

struct IndexUpdateCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "update", abstract: "Bring all indexes over properties up to date.")

    @OptionGroup var arguments: StoreArguments

    func run(_ console: Console) throws {
        let indexes = try arguments.withDatabase(readOnly: false) { database in
            try database.updateIndexes()
            return try database.indexes
        }
        for index in indexes { try console.printResult(console.isJSON ? index.json : index.text) }
    }
}

struct IndexRemoveCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Drop an index. Documents are not touched.")

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The name of the index.")
    var name: String

    func run(_ console: Console) throws {
        let wasThere = try arguments.withDatabase(readOnly: false) { database in
            try database.deleteIndex(named: name)
        }
        guard wasThere else { throw Failure.missingIndex(name) }
    }
}

extension PropertyIndex {
    fileprivate var text: String {
        let paths = paths.map { Console.printable($0.description) }.joined(separator: ", ")
        return
            "\(Console.printable(name))  \(paths)  \(documentCount) \(isOverElements ? "entries" : "documents")\(isStale ? ", not up to date" : "")"
    }

    fileprivate var json: String {
        var line = JSONLine(type: "index")
        line.add("name", name)
        line.add("paths", json: "[" + paths.map { JSONLine.quoted($0.description) }.joined(separator: ",") + "]")
        line.add("documents", documentCount)
        line.add("stale", isStale)
        return line.finished
    }
}

extension Failure {
    fileprivate static func missingIndex(_ name: String) -> Failure {
        Failure(
            message: "there is no index \(Console.printable(name)) (404)", code: "indexNotFound", status: 404,
            exit: .failed)
    }
}
