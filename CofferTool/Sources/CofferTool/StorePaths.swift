internal import Coffer
internal import Foundation
internal import ArgumentParser

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

/// The stores that a command about many of them is for, each once.
struct StoreList {
    /// Their paths: of a folder sorted by their bytes, of a list as it has them.
    private(set) var paths: [String] = []

    /// What is in the folder, or in those below it where these are looked into, and is not a store.
    private(set) var passedOver: [PassedOver] = []

    /// Something that is not a store, by its name or because it is a link.
    struct PassedOver {
        enum Kind {
            /// In which there may be stores.
            case folder
            /// Called as a store is. What it leads to has a name of its own, and only that can be opened.
            case link
            case other
        }

        let path: String
        let kind: Kind
    }

    /// The folders below the folder that could not be read, so that nobody knows which stores are in them.
    private(set) var unreadable: [Unreadable] = []

    struct Unreadable {
        let path: String
        let failure: Failure
    }

    /// What was named: the folder, or the list.
    private let name: String

    private let isRecursive: Bool

    /// What each path leads to, nil if nothing is, and whether it is a symbolic link to that.
    private var targets: [(identity: FileIdentity?, isLink: Bool)] = []

    /// - Parameters:
    ///   - argument: a folder of stores, a store, a file that has the path of a store on each line, or `-`: such lines on
    ///     standard input.
    ///   - isRecursive: whether the folders in a folder of stores are looked into, too. Links to folders are not.
    /// - Throws: `databaseNotFound` (404) where nothing is there, and where stores may be in folders that are not looked into.
    init(_ argument: String, isRecursive: Bool = false) throws(Failure) {
        self.isRecursive = isRecursive
        name = argument == "-" ? "standard input" : argument
        if argument == "-" {
            try addLines(InputFile.contents(of: STDIN_FILENO, named: name), of: name)
        } else {
            var status = stat()
            guard unsafe stat(argument, &status) == 0 else {
                throw errno == ENOENT ? Failure.noStores(at: argument) : Failure.system(errno, argument)
            }
            if status.st_mode & S_IFMT != S_IFDIR {
                try addLines(InputFile.contents(of: argument), of: argument)
            } else if (try? StorePath(argument)) != nil {
                add(argument)
            } else {
                try addStores(in: argument)
            }
        }
        // An empty folder is one that no store was made in so far; stores in folders below it would be forgotten in silence.
        guard !paths.isEmpty || !passedOver.contains(where: { $0.kind == .folder }) else {
            throw Failure.usage("\(argument): it holds no store", hint: "--recursive also looks into its folders")
        }
    }

    /// A store that is named twice, or on two ways, is one: under its own name, if that is among them.
    private mutating func add(_ path: String) {
        let isLink = Self.kind(of: path) == S_IFLNK
        let identity = FileIdentity(path: path)
        if let identity, let place = targets.firstIndex(where: { $0.identity == identity }) {
            guard targets[place].isLink && !isLink else { return }
            paths.remove(at: place)
            targets.remove(at: place)
        }
        paths.append(path)
        targets.append((identity, isLink))
    }

    private mutating func addLines(_ contents: Data, of name: String) throws(Failure) {
        guard let text = String(validating: contents, as: UTF8.self), !text.contains("\0") else {
            throw Failure.usage("\(name): not a list of paths", hint: "each line is the path of a store")
        }
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: { $0 == "\n" || $0 == "\r\n" })
        // A store that is called so is given as ./#NAME.
        for (index, line) in lines.enumerated() where !line.isEmpty && !line.hasPrefix("#") {
            // It may be a line of a key's file, which was named by mistake: it is repeated nowhere.
            guard (try? StorePath(String(line))) != nil else {
                throw Failure.usage(
                    "\(name):\(index + 1): this is not the path of a store",
                    hint: "each line of a list is the path of a folder called NAME.coffer")
            }
            add(String(line))
        }
    }

    private mutating func addStores(in folder: String) throws(Failure) {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: folder)
        } catch {
            throw Failure(describing: error, subject: folder)
        }
        for name in names.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) where !name.hasPrefix(".") {
            let path = folder.hasSuffix("/") ? folder + name : folder + "/" + name
            let kind = Self.kind(of: path)
            if kind == nil, errno != ENOENT {
                unreadable.append(Unreadable(path: path, failure: Failure.system(errno, path)))
            } else if name.hasSuffix(".coffer") {
                if kind == S_IFLNK {
                    passedOver.append(PassedOver(path: path, kind: .link))
                } else {
                    add(path)
                }
            } else if kind == S_IFDIR && isRecursive {
                do throws(Failure) {
                    try addStores(in: path)
                } catch {
                    unreadable.append(Unreadable(path: path, failure: error))
                }
            } else {
                passedOver.append(PassedOver(path: path, kind: kind == S_IFDIR ? .folder : .other))
            }
        }
    }

    /// Says in notes on standard error what was skipped, and that there is no store.
    func notePassedOver(_ console: Console) {
        for other in passedOver {
            let reason =
                switch other.kind {
                case .folder: "a folder; --recursive looks into it"
                case .link: "a link to a store; name the store itself"
                case .other: "not called NAME.coffer"
                }
            console.printNote("\(Console.printable(other.path)): skipped: \(reason)")
        }
        if isEmpty { console.printNote("\(Console.printable(name)): it holds no store") }
    }

    /// Whether there is neither a store nor a folder in which there may be one.
    var isEmpty: Bool { paths.isEmpty && unreadable.isEmpty }

    /// Leaves out all stores but those, in that order.
    ///
    /// - Returns: how many were left out.
    mutating func keep(_ kept: [String]) -> Int {
        defer { paths = kept }
        return paths.count - kept.count
    }

    /// What kind of thing is at `path`, not followed; nil if nothing is.
    private static func kind(of path: String) -> mode_t? {
        var status = stat()
        return unsafe lstat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
    }
}

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
