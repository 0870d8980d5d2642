internal import ArgumentParser

/// The stores that a command about many of them is for.
struct StoreListArguments: ParsableArguments {
    @Argument(
        help: """
            A folder of stores, a store, a file with the path of a store on each line, or - for such lines on standard input.
            """,
        completion: .file())
    var stores: String

    @Flag(help: "Also look into subfolders. Links and names that begin with a dot are skipped.")
    var recursive = false

    var isStandardInput: Bool { stores == "-" }

    /// The stores. Everything else in the folder is named in a note on standard error.
    func list(_ console: Console) throws(Failure) -> StoreList {
        let list = try StoreList(stores, isRecursive: recursive)
        list.notePassedOver(console)
        return list
    }
}
