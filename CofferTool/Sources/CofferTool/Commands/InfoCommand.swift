internal import ArgumentParser
internal import Coffer
internal import Foundation

struct InfoCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Say what a store is, or each of many.",
        usage: "coffer info <store> [<options>]",
        discussion: """
            Without --key that is what can be known without one, and the store is neither opened nor locked. With --key it is \
            opened, its keys are listed with their labels, and it is counted and measured: its documents, the last sequence, \
            the database file with its log, and the files of attachments and blobs.

            What a change of the key has left that was killed is said in any case, with its size, and what removes it.

            Of a folder of stores, a file with the path of a store on each line, or - for such lines on standard input, each store \
            has a line. One that can't be read, or that the key doesn't open, keeps no other out: the command ends with 3 then, \
            and with what was wrong with the first where none could be read. See also coffer audit.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Flag(help: "Look into the folders in a folder of stores, too. Links, and what begins with a dot, are passed over.")
    var recursive = false

    /// Whether it is one store that is named, and not a folder or a list of them.
    private var isOfOne: Bool { (try? arguments.path()) != nil }

    var stores: [String] {
        if isOfOne { return [arguments.store] }
        // Without a key nothing is opened, and a list on standard input can be read once.
        guard arguments.key != nil, arguments.store != "-" else { return [] }
        return (try? StoreList(arguments.store, isRecursive: recursive))?.paths ?? []
    }

    /// It is opened only where `--key` says so.
    var keySources: [KeySource] {
        get throws(Failure) { try [arguments.givenSource()].compactMap(\.self) }
    }

    func run(_ console: Console) throws {
        guard !isOfOne else {
            guard !recursive else { throw Failure.usage("--recursive is for a folder of stores") }
            let key = try arguments.key == nil ? nil : openingKey()
            let store = try StoreDescription(arguments.store, key: key, isOpened: arguments.key != nil)
            try console.printResult(console.isJSON ? store.json : store.text)
            store.left.warn(of: arguments.store, console)
            return
        }
        let source = try arguments.givenSource()
        guard arguments.store != "-" || source?.usesStandardInput != true else {
            throw Failure.usage("standard input cannot be both a key and the list of stores")
        }
        let list = try StoreList(arguments.store, isRecursive: recursive)
        list.notePassedOver(console)
        Interruption.watch()
        let key = try source.map { (source) throws(Failure) in try source.key(for: "Key of the stores") }
        try describe(list.paths, key, console)
    }

    private func openingKey() throws -> SymmetricKey? {
        try arguments.openingKey(Manager(directory: arguments.path().folder))
    }

    private func describe(_ paths: [String], _ key: SymmetricKey?, _ console: Console) throws {
        var failures: [Failure] = []
        for path in paths {
            try Interruption.check()
            do {
                let store = try StoreDescription(path, key: key, isOpened: key != nil)
                try console.printResult(console.isJSON ? store.json : store.line)
                store.left.warn(of: path, console)
            } catch {
                let failure = Failure(ofOneStore: error, path)
                failures.append(failure)
                try console.printResult(
                    console.isJSON ? failure.storeLine(path) : "unreadable     \(Console.printable(path))")
                console.printFailure(failure)
            }
        }
        try console.flush()
        guard let first = failures.first else { return }
        throw Failure(
            message: "\(failures.count) of \(paths.count) stores could not be read", code: first.code,
            status: first.status, exit: failures.count < paths.count ? .partlyDone : first.exit)
    }
}

/// What can be said of a store.
private struct StoreDescription {
    private let path: String
    private let info: StoreInfo
    /// Nil where there was no key.
    private var inside: Inside?
    let left: [OldGeneration]

    /// What only who has a key can know.
    private struct Inside {
        let documentCount: Int
        let lastSequence: Int
        let keys: [DatabaseKey]
        let sizes: StoreSizes
        let missingContentCount: Int
    }

    init(_ argument: String, key: SymmetricKey?, isOpened: Bool) throws {
        path = argument
        let store = try StorePath(argument)
        let manager = try Manager(directory: store.folder)
        info = try manager.storeInfo(named: store.databaseName)
        if isOpened {
            var options = DatabaseOptions()
            options.readOnly = true
            options.encryptionKey = key
            let database = try manager.openDatabase(named: store.databaseName, options: options)
            // What went wrong first is what counts.
            defer { try? database.close() }
            inside = Inside(
                documentCount: try database.documentCount, lastSequence: try database.lastSequenceNumber,
                keys: try database.keys, sizes: try StoreSizes(of: store, generation: info.generation),
                missingContentCount: try database.missingContentCount)
        }
        // A process that has the store open for writing has removed it, or is changing the key now.
        left = (try? manager.oldGenerations(ofDatabaseNamed: store.databaseName)) ?? []
    }

    /// One line, as one of many.
    var line: String {
        let keyCount = info.keySlots.count
        var parts = ["uuid \(info.storeUUID.uuidString.lowercased())", "generation \(info.generation)"]
        if info.isEncrypted { parts.append("\(keyCount) key\(keyCount == 1 ? "" : "s")") }
        if let inside {
            parts.append("\(inside.documentCount) document\(inside.documentCount == 1 ? "" : "s")")
            parts.append("\(inside.sizes.databaseByteCount + inside.sizes.contentByteCount) bytes")
        }
        let state = info.isEncrypted ? "encrypted    " : "not encrypted"
        return "\(state)  \(Console.printable(path))  \(parts.joined(separator: ", "))"
    }

    var text: String {
        var lines = [
            "encrypted   \(info.isEncrypted ? "yes" : "no")",
            "uuid        \(info.storeUUID.uuidString.lowercased())",
            "generation  \(info.generation)",
            "sequence    \(info.sequence)",
        ]
        // From one of the two, so that a change in between does not show.
        let keys = inside?.keys.map(\.text) ?? info.keySlots.map { "  " + $0.text }
        lines += keys.map { "key       \($0)" }
        if let inside {
            let sizes = inside.sizes
            lines.append("documents   \(inside.documentCount), last sequence \(inside.lastSequence)")
            lines.append("database    \(sizes.databaseByteCount) bytes")
            lines.append("contents    \(sizes.contentCount), in \(sizes.contentByteCount) bytes")
            if inside.missingContentCount > 0 {
                lines.append("not here    \(inside.missingContentCount) contents, left out by a pull")
            }
        }
        for generation in left {
            let access = generation.mayBeReadable ? "may be readable without a key" : "encrypted"
            lines.append("left        \(generation.byteCount) bytes of an old generation, \(access)")
        }
        return lines.joined(separator: "\n")
    }

    var json: String {
        var line = JSONLine(type: "store")
        line.add("path", path)
        line.add("encrypted", info.isEncrypted)
        line.add("uuid", info.storeUUID.uuidString.lowercased())
        line.add("generation", info.generation)
        line.add("sequence", info.sequence)
        let keys = inside?.keys.map(\.json) ?? info.keySlots.map(\.json)
        line.add("keys", json: "[" + keys.joined(separator: ",") + "]")
        if let inside {
            line.add("documents", inside.documentCount)
            line.add("lastSequence", inside.lastSequence)
            line.add("databaseBytes", inside.sizes.databaseByteCount)
            line.add("contents", inside.sizes.contentCount)
            line.add("contentBytes", inside.sizes.contentByteCount)
            line.add("missingContents", inside.missingContentCount)
        }
        line.add("oldGenerations", json: left.json)
        return line.finished
    }
}
