internal import ArgumentParser
internal import Coffer
internal import Foundation

/// Says of many stores what each is, also where they are several users' and root asks: by one process after the other, each of which
/// becomes an owner's for good before it opens anything.
struct InfoParts {
    /// Opens the stores; nil if none is opened.
    let key: SymmetricKey?
    let isPassword: Bool
    let isJSON: Bool

    /// What a process receives, but for the key.
    struct Part: Codable {
        let owner: Owner
        let paths: [String]
        let isJSON: Bool
    }

    /// Hands out what there is to say of each store, one user's after the other's.
    func describe(_ paths: [String], _ show: (StoreLine) throws -> Void) throws {
        // Without a key no store is opened.
        let parts = key == nil ? [(owner: nil, stores: paths)] : Owner.parts(of: paths)
        if parts.count == 1 { try parts[0].owner?.act() }
        for part in parts {
            if parts.count > 1, let owner = part.owner {
                try describe(Part(owner: owner, paths: part.stores, isJSON: isJSON), show)
                continue
            }
            for path in part.stores {
                try Interruption.check()
                try show(StoreLine.describing(path, key, isJSON: isJSON))
            }
        }
    }

    private func describe(_ part: Part, _ show: (StoreLine) throws -> Void) throws {
        let keys = key.map { [PartedRotation.Key(key: $0, isPassword: isPassword)] } ?? []
        let process = try ChildProcess([InfoPartCommand.name] + (isJSON ? ["--json"] : []))
        var rest = part.paths[...]
        do {
            // One that ends before it has read all says why itself.
            try? PartMessage.send(part, keys, to: process.input)
            process.endInput()
            let decoder = JSONDecoder()
            try process.forEachLine { line in
                try Interruption.check()
                try show(decoder.decode(StoreLine.self, from: line))
                rest = rest.dropFirst()
            }
        } catch {
            process.terminate()
            // It may be waiting for room to write in, and would never end.
            try? process.forEachLine { _ in }
            _ = process.wait()
            throw error
        }
        let status = process.wait()
        try Interruption.check()
        for path in rest {
            try show(StoreLine(path, isJSON: isJSON, failure: .ownersProcessEnded(status, path)))
        }
    }
}

/// The part of `coffer info` that a process does as the owner of some of the stores. Nobody calls it but that.
struct InfoPartCommand: ParsableCommand {
    static let name = "info-part"

    static let configuration = CommandConfiguration(
        commandName: name, abstract: "Do one owner's part of coffer info.", shouldDisplay: false)

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    func run() throws {
        Interruption.watch()
        let (part, keys) = try PartMessage.receive(InfoParts.Part.self, from: STDIN_FILENO)
        guard let key = keys.first else { throw Failure.usage("only coffer info runs this") }
        try part.owner.act()
        let encoder = JSONEncoder()
        for path in part.paths {
            try Interruption.check()
            let line = StoreLine.describing(path, key, isJSON: part.isJSON)
            try Console.write(Array(encoder.encode(line)) + [UInt8(ascii: "\n")], to: STDOUT_FILENO)
        }
    }
}
