internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The stores that a command about many of them is for, each once.
struct StoreList {
    /// Their paths: of a folder sorted by their bytes, of a list as it has them.
    private(set) var paths: [String] = []

    /// What is in the folder, or in those below it where these are looked into, and is no store by its name.
    private(set) var passedOver: [PassedOver] = []

    /// Something that is no store by its name.
    struct PassedOver {
        let path: String
        /// Whether it is a folder, in which there may be stores.
        let isFolder: Bool
    }

    private let isRecursive: Bool

    /// What each path leads to, nil where nothing is, and whether it is a symbolic link to that.
    private var targets: [(identity: FileIdentity?, isLink: Bool)] = []

    /// - Parameters:
    ///   - argument: a folder of stores, a store, a file that has the path of a store on each line, or `-`: such lines on
    ///     standard input.
    ///   - isRecursive: whether the folders in a folder of stores are looked into, too. Links to folders are not.
    init(_ argument: String, isRecursive: Bool = false) throws(Failure) {
        self.isRecursive = isRecursive
        if argument == "-" {
            try addLines(InputFile.contents(of: STDIN_FILENO, named: "standard input"), of: "standard input")
        } else {
            var status = stat()
            guard unsafe stat(argument, &status) == 0 else { throw Failure.system(errno, argument) }
            if status.st_mode & S_IFMT != S_IFDIR {
                try addLines(InputFile.contents(of: argument), of: argument)
            } else if (try? StorePath(argument)) != nil {
                add(argument)
            } else {
                try addStores(in: argument)
            }
        }
        guard !paths.isEmpty else {
            let hasFolders = !isRecursive && passedOver.contains(where: \.isFolder)
            throw Failure.usage(
                "\(argument): it has no store",
                hint: hasFolders ? "--recursive looks into the folders in it, too" : nil)
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
            throw Failure.usage("\(name): not a list of paths", hint: "it has the path of a store on each line")
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
            if name.hasSuffix(".coffer") {
                add(path)
                continue
            }
            let isFolder = Self.kind(of: path) == S_IFDIR
            if isFolder && isRecursive {
                try addStores(in: path)
            } else {
                passedOver.append(PassedOver(path: path, isFolder: isFolder))
            }
        }
    }

    /// Names in a note on standard error what was passed over.
    func notePassedOver(_ console: Console) {
        for other in passedOver {
            let reason = other.isFolder ? "a folder, which --recursive looks into" : "not called NAME.coffer"
            console.printNote("\(Console.printable(other.path)): passed over: \(reason)")
        }
    }

    /// Leaves out all stores but those, in that order.
    ///
    /// - Returns: how many were left out.
    mutating func keep(_ kept: [String]) -> Int {
        defer { paths = kept }
        return paths.count - kept.count
    }

    /// What kind of thing is at `path`, not followed; nil where nothing is.
    private static func kind(of path: String) -> mode_t? {
        var status = stat()
        return unsafe lstat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
    }
}
