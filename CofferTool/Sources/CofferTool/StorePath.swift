internal import Coffer
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The path of a store, taken apart into what the library asks for: a folder, and the name of a database in it.
struct StorePath: Equatable {
    /// The folder that the store is in.
    let folder: URL

    /// The name of the database: the store's own without `.coffer`, with `/` where a file's name has `:`.
    let databaseName: String

    /// The name of the store on the disk.
    let fileName: String

    /// The store's own path.
    var path: String { folder.appending(path: fileName, directoryHint: .notDirectory).path(percentEncoded: false) }

    /// Whether that is what the library calls the store in an error.
    func isMeant(by subject: String) -> Bool {
        subject == "database \(databaseName)" || subject == path || subject == path + "/"
    }

    /// The store's UUID, if there is a store that this user may read.
    var uuid: UUID? { try? Manager(directory: folder).storeInfo(named: databaseName).storeUUID }

    private static let suffix = ".coffer"

    init(_ argument: String) throws(Failure) {
        let store = URL(filePath: argument, directoryHint: .isDirectory).standardizedFileURL
        fileName = store.lastPathComponent
        guard fileName.hasSuffix(Self.suffix), fileName.utf8.count > Self.suffix.utf8.count else {
            throw Failure.usage("\(argument): not the name of a store", hint: "a store is a folder called NAME.coffer")
        }
        folder = store.deletingLastPathComponent()
        databaseName = String(fileName.dropLast(Self.suffix.count)).replacing(":", with: "/")
    }

    /// Throws unless the folder is there: a mistyped path is not to make new ones.
    func checkFolder() throws(Failure) {
        let path = folder.path(percentEncoded: false)
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw Failure.system(errno, path) }
    }
}
