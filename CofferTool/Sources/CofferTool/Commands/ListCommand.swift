internal import ArgumentParser
internal import Coffer

struct ListCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls",
        abstract: "List the ids of the documents.",
        discussion:
            "They come in the order of their bytes, one on each line; an id that does not fit there as a JSON string."
    )

    @OptionGroup var arguments: StoreArguments

    func run(_ console: Console) throws {
        try arguments.withDatabase(readOnly: true) { database in
            var ids = try database.documentIDs()
            while let last = ids.last {
                for id in ids { try console.printResult(console.isJSON ? json(id) : Console.printable(id)) }
                ids = try database.documentIDs(after: last)
            }
        }
    }

    private func json(_ id: String) -> String {
        var line = JSONLine(type: "document")
        line.add("id", id)
        return line.finished
    }
}
