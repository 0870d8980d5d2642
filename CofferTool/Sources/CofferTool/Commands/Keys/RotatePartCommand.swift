internal import ArgumentParser
internal import Coffer
internal import Foundation

/// The part of `coffer rotate` that a process does as the owner of some of the stores. Nobody calls it but that.
struct RotatePartCommand: ParsableCommand {
    static let name = "rotate-part"

    static let configuration = CommandConfiguration(
        commandName: name, abstract: "Do one owner's part of coffer rotate.", shouldDisplay: false)

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    func run() throws {
        Interruption.watch()
        let (part, keys) = try PartMessage.receive(PartedRotation.Part.self, from: STDIN_FILENO)
        try part.owner?.act()
        let channel = PartChannel()
        let rotationKeys = RotationKeys { path, uuid in
            let keys = part.asksForKeys ? try channel.keys(ofStoreAt: path, uuid) : keys
            guard part.asksForNewKey else { return try RotationKeys.OfStore(keys) }
            return try RotationKeys.OfStore(withoutNew: keys) { try channel.newKey(ofStoreAt: path, uuid) }
        }
        let rotation = Rotation(
            keys: rotationKeys, manner: part.manner,
            willChange: { store in if part.announcesStores { try channel.announce(store) } },
            progress: part.showsProgress ? channel.show : nil)
        let run = RotationRun(
            rotation: rotation, paths: part.paths, jobCount: part.jobCount, goesOn: part.goesOn, isJSON: part.isJSON,
            limits: part.limits)
        let summary = try Interruptible.run {
            try await run.run { report in try channel.report(report) }
        }
        // What failed was reported, and is not a failure of this process.
        if summary.isCancelled { ExitStatus.cancelled.endProcess() }
    }
}
