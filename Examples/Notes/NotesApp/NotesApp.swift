import Coffer
import Foundation
import Notes

/// `notes-app write TITLE TEXT`, `show TITLE`, `list` and `search WORDS`, in the folder that `NOTES_FOLDER` names, with the
/// password in `NOTES_PASSWORD`. An app for people asks for the password, or keeps a key in the system's keychain.
@main
struct NotesApp {
    static func main() throws {
        let environment = ProcessInfo.processInfo.environment
        guard let password = environment["NOTES_PASSWORD"], let folder = environment["NOTES_FOLDER"] else {
            end(64, "NOTES_FOLDER and NOTES_PASSWORD have to be set")
        }
        do {
            let manager = try Manager(directory: URL(filePath: folder, directoryHint: .isDirectory))
            let notes = try Notes(manager: manager, key: SymmetricKey(password: password))
            try run(Array(CommandLine.arguments.dropFirst()), notes)
            try notes.close()
        } catch let error as CofferError where error.status == 401 {
            end(1, "That isn't the password of these notes.")
        }
    }

    private static func run(_ arguments: [String], _ notes: Notes) throws {
        switch (arguments.first, arguments.count) {
        case ("write", 3): try notes.write(arguments[2], under: arguments[1])
        case ("show", 2): print(try notes.text(under: arguments[1]) ?? "There is no such note.")
        case ("list", 1): for title in try notes.titles { print(title) }
        case ("search", 2): for note in try notes.search(arguments[1]) { print("\(note.title): \(note.excerpt)") }
        default: end(64, "usage: notes-app write TITLE TEXT | show TITLE | list | search WORDS")
        }
    }

    private static func end(_ status: Int32, _ reason: String) -> Never {
        FileHandle.standardError.write(Data("\(reason)\n".utf8))
        exit(status)
    }
}
