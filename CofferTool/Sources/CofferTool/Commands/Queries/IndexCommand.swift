internal import ArgumentParser
internal import Coffer

/// `coffer index`: indexes over properties, which queries use, and over the words of texts, which searches use.
struct IndexCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "index",
        abstract: "Add, list, update or remove indexes over properties and texts.",
        discussion: """
            An index finds documents by its properties, from the first on: by equal values, and by a range of the next \
            property. With tags[] it has an entry for each element of that list, and finds documents by any of them. \
            A text index finds documents by the words of their texts: see coffer search. The store keeps both, encrypted \
            like everything else.
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
        commandName: "add", abstract: "Declare an index over properties or texts, and fill it.",
        usage: "coffer index add <store> <name> <path> ... [<options>]",
        discussion: "It replaces an index of that name and kind over other properties.")

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The name of the index.")
    var name: String

    @Argument(help: ArgumentHelp("The properties, such as address.city, the most important first.", valueName: "path"))
    var paths: [String]

    @Flag(help: "Index the words of the texts at these properties, for coffer search.")
    var text = false

    @Flag(help: "With --text: tell words apart by their accents.")
    var accents = false

    @Option(
        help: ArgumentHelp("With --text: find all forms of this language's words. Only en is known.", valueName: "code")
    )
    var language: String?

    func validate() throws {
        guard text || !accents && language == nil else {
            throw ValidationError("--accents and --language need --text")
        }
    }

    func run(_ console: Console) throws {
        let indexes = try arguments.withDatabase(readOnly: false) { database -> [any ListedIndex] in
            let paths = paths.map { PropertyPath($0) }
            guard text else {
                try database.createIndex(named: name, on: paths)
                try database.updateIndexes()
                return try database.indexes
            }
            try database.createTextIndex(named: name, on: paths, ignoresAccents: !accents, language: language)
            try database.updateTextIndex(named: name)
            return try database.textIndexes
        }
        guard let index = indexes.first(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
            throw Failure.missingIndex(name)
        }
        try index.print(to: console)
    }
}

struct IndexListCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the indexes, with their properties and how many entries they have.")

    @OptionGroup var arguments: StoreArguments

    func run(_ console: Console) throws {
        try arguments.withDatabase(readOnly: true) { database in try database.printIndexes(console) }
    }
}

struct IndexUpdateCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "update", abstract: "Bring all indexes up to date.")

    @OptionGroup var arguments: StoreArguments

    func run(_ console: Console) throws {
        try arguments.withDatabase(readOnly: false) { database in
            try database.updateIndexes()
            for index in try database.textIndexes { try database.updateTextIndex(named: index.name) }
            try database.printIndexes(console)
        }
    }
}

struct IndexRemoveCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Drop an index. Documents are not touched.")

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The name of the index.")
    var name: String

    @Flag(help: "Drop the text index of that name.")
    var text = false

    func run(_ console: Console) throws {
        let wasThere = try arguments.withDatabase(readOnly: false) { database in
            try text ? database.deleteTextIndex(named: name) : database.deleteIndex(named: name)
        }
        guard wasThere else { throw Failure.missingIndex(name) }
    }
}

extension Database {
    fileprivate func printIndexes(_ console: Console) throws {
        for index in try indexes { try index.print(to: console) }
        for index in try textIndexes { try index.print(to: console) }
    }
}

/// An index of any kind, as the commands show it.
private protocol ListedIndex {
    var name: String { get }
    var text: String { get }
    var json: String { get }
}

extension ListedIndex {
    fileprivate func print(to console: Console) throws { try console.printResult(console.isJSON ? json : text) }
}

extension TextIndex: ListedIndex {
    fileprivate var text: String {
        let paths = paths.map { Console.printable($0.description) }.joined(separator: ", ")
        let options = (ignoresAccents ? "" : ", by accents") + (language.map { ", \($0)" } ?? "")
        return
            "\(Console.printable(name))  text of \(paths)\(options)  \(documentCount) documents\(isStale ? ", not up to date" : "")"
    }

    fileprivate var json: String {
        var line = JSONLine(type: "textIndex")
        line.add("name", name)
        line.add("paths", json: "[" + paths.map { JSONLine.quoted($0.description) }.joined(separator: ",") + "]")
        line.add("ignoresAccents", ignoresAccents)
        if let language { line.add("language", language) }
        line.add("documents", documentCount)
        line.add("stale", isStale)
        return line.finished
    }
}

extension PropertyIndex: ListedIndex {
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
