internal import ArgumentParser
internal import Coffer
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

struct PutCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "put",
        abstract: "Save a document.",
        discussion: "An existing document gets its next revision. The result is the new revision's id."
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of the document.")
    var id: String

    @Argument(help: "A file with one JSON object. The default, also with -, is standard input.", completion: .file())
    var file = "-"

    func run(_ console: Console) throws {
        let json = try contents()
        let revision = try arguments.withDatabase(readOnly: false) { database in
            try database.inTransaction {
                let current = try database.document(withID: id).currentRevisionID
                return try database.save(json: json, withID: id, replacing: current)
            }
        }
        if console.isJSON {
            var line = JSONLine(type: "document")
            line.add("id", id)
            line.add("revision", revision.revisionID.description)
            try console.printResult(line.finished)
        } else {
            try console.printResult(revision.revisionID.description)
        }
    }

    private func contents() throws(Failure) -> Data {
        guard file == "-" else { return try InputFile.contents(of: file) }
        if try arguments.keySource()?.usesStandardInput == true {
            throw Failure.usage("standard input cannot be both the key and the document")
        }
        return try InputFile.contents(of: STDIN_FILENO, named: "standard input")
    }
}
