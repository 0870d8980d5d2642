internal import ArgumentParser
internal import Coffer
internal import CofferKeys
internal import Foundation

struct RotateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Re-encrypt many stores under another key, as coffer rekey does, with a receipt for each.",
        usage: "coffer rotate <stores> [<options>]",
        discussion: """
            A store that the new key opens and the old one doesn't was rotated before, so a run that was interrupted, \
            by ^C or in any other way, can be repeated and does the rest. At any time exactly one of the two keys \
            opens a store. The first failure ends the run, after the stores under way, unless --keep-going is given. A \
            process for each user, with no other rights, rotates that user's stores, one user after the other.

            If a store was not re-encrypted since the new key was added, or other keys open it too, its receipt says \
            so, and the command ends with 3.

            A receipt names the store and its generation, how much was re-encrypted and how long it took, which keys \
            open it now and which ended, and says that the old key was tried and refused. The command ends with 3 when \
            some stores are under the new key and some failed, and with the first failure's status if none is. It also \
            ends with 3 when a store has the new key, but data under the old one could not be removed, and says where \
            that is.

            With --receipts a file keeps them: a line for each run, one on the disk before each store is changed, and \
            one with the result. Each line has the SHA-256 of the one before, and the command prints the last line's. \
            If a run was killed between a change and its receipt, the next one with that file completes it. --resume \
            continues the last rotation in the file, only with stores that it has not finished, or that were changed \
            since. The file doesn't say which key the new one was, so coffer tries it on a store that has it, wherever \
            that is; if it is a different key, or no such store can be found, nothing is changed. coffer receipts \
            verify checks the file.

            A folder without stores, or a list without lines, is 0; one that doesn't exist is 10. A subfolder that \
            can't be read is a failure, and the others are done.
            """
    )

    @OptionGroup var stores: StoreListArguments

    @Option(
        help: ArgumentHelp(
            "Where the key comes from that opens the stores: see coffer get --help.", valueName: "source"))
    var key: String?

    @OptionGroup var newKey: NewKeyArguments

    @Option(
        help: ArgumentHelp(
            "Another key of all stores to keep. Repeatable.", valueName: "source"))
    var keepKey: [String] = []

    @Flag(help: "Drop all other keys of the stores.")
    var dropOtherKeys = false

    @Option(help: ArgumentHelp("How many stores at a time, up to 64.", valueName: "count"))
    var jobs = 1

    @Flag(help: "Continue with the other stores after one failed.")
    var keepGoing = false

    @Flag(
        help: """
            Change nothing, and report what would be done: whether the keys open each store, no other process has it \
            open, it can be written, and a second copy of it fits on the disk. Receipts are read, for --resume, and \
            neither they nor metrics are written. A command for the new key, which may make one, is run only where a \
            store needs it to be told apart, and with --verify.
            """)
    var dryRun = false

    @Flag(help: "With --dry-run, also read all of each store and look for damage.")
    var verify = false

    @Option(
        help: ArgumentHelp(
            "Append receipts to this file, durably before each store is changed: see coffer receipts.",
            valueName: "file"),
        completion: .file())
    var receipts: String?

    @Flag(
        help: """
            Run the command of a key from cmd: for each store, with COFFER_STORE_PATH, COFFER_STORE_UUID and \
            COFFER_KEY_PURPOSE (old, new or kept) in its environment, and not once for all.
            """)
    var keyForEachStore = false

    @OptionGroup var metrics: MetricsArguments

    @OptionGroup var selection: StoreSelection

    @Option(help: ArgumentHelp("Rotate at most this many stores.", valueName: "count"))
    var maxStores: Int?

    @Option(
        help: ArgumentHelp(
            "Begin no store after this time: 05:30, today or tomorrow, or 2026-05-31T05:30:00Z.",
            valueName: "time"))
    var until: PointInTime?

    @Option(
        help: ArgumentHelp(
            "Wait this long for a store that another process has open, such as 30s or 5m.", valueName: "time"))
    var wait: WaitingTime?

    @Flag(help: "Keep the keys of --keep-key in the stores that they open; a key that opens none is not a failure.")
    var keepKeyWhereItOpens = false

    @Flag(
        help: "Continue the last rotation in the file of receipts, skipping the stores that it has finished."
    )
    var resume = false

    @Option(help: ArgumentHelp("A label for this run in the file of receipts. Repeatable.", valueName: "text"))
    var label: [String] = []

    @Flag(
        help: """
            Report progress even without a terminal, in at most a line each second: how many stores are done, about \
            how long the others take, and which are under way.
            """)
    var progress = false

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    func run() throws {
        guard !dryRun else {
            var unused = PrometheusText()
            return try rotate(&unused)
        }
        try metrics.recording("coffer_rotation", "the rotation", receipts: receipts, isJSON: json) { try rotate(&$0) }
    }

    private func rotate(_ counts: inout PrometheusText) throws {
        let console = Console(isJSON: json)
        guard (1...64).contains(jobs) else { throw Failure.usage("--jobs is a number from 1 to 64") }
        guard maxStores.map({ $0 > 0 }) ?? true else { throw Failure.usage("--max-stores is 1 or more") }
        guard receipts != nil || (!resume && label.isEmpty) else {
            throw Failure.usage("--resume and --label are for --receipts")
        }
        guard dryRun || !verify else {
            throw Failure.usage(
                "--verify goes with --dry-run", hint: "a rotation checks everything that it copies anyway")
        }
        let sources = try sources()
        var list = try stores.list(console)
        Interruption.watch()
        let log =
            dryRun
            ? nil
            : try receipts.map { (path) throws(Failure) in
                try ReceiptLog(path: path, resumes: resume, labels: label)
            }
        let resumed = try resumedRotation(log)
        let leftOut = selection.apply(to: &list, resuming: resumed)
        let same = keyForEachStore ? nil : try sources.read(console)
        let keys = if let same { RotationKeys(same) } else { try sources.readForEachStore(console) }
        try resumed?.checkIsSame(isNeeded: !list.paths.isEmpty, keys.newKey)
        var summary: RotationRun.Summary
        let parts = Owner.parts(of: list.paths)
        // A command is run with the rights that this process has, and not with those of the stores' owner; and where another
        // user's process does the work, this one can still write its metrics.
        let mayGiveUpRights = same != nil && !sources.asksForNewLater && (metrics.metrics == nil || dryRun)
        let isAlone = parts.count == 1 && (parts[0].owner == nil || mayGiveUpRights)
        if isAlone { try parts[0].owner?.act() }
        let meter = RotationMeter(
            list.paths, isAsked: progress, isJSON: json, jobCount: jobs, limits: limits, measuresStores: isAlone)
        defer { meter.clear() }
        let isJSON = json
        if isAlone {
            var rotation = Rotation(keys: keys, manner: manner, willChange: { store in try log?.begin(store) })
            if meter.isShown { rotation.progress = meter.show }
            let run = RotationRun(
                rotation: rotation, paths: list.paths, jobCount: jobs, goesOn: keepGoing, isJSON: json,
                limits: limits)
            summary = try Interruptible.run {
                try await run.run { report in try Self.show(report, meter, log, isJSON: isJSON) }
            }
        } else {
            let run = PartedRotation(
                parts: parts.map {
                    part(
                        $0, $1, announcesStores: log != nil, asksForNewKey: sources.asksForNewLater,
                        showsProgress: meter.isShown)
                },
                keys: try same.map { .same(try sources.tagged($0)) }
                    ?? .each { path, uuid in try sources.tagged(keys.keys(ofStoreAt: path, uuid)) },
                newKey: { path, uuid in sources.tagged(new: try keys.newKey(ofStoreAt: path, uuid)) })
            summary = try Interruptible.run {
                try await run.run(log, meter.show) { report in try Self.show(report, meter, log, isJSON: isJSON) }
            }
        }
        for folder in list.unreadable {
            let report = RotationReport(
                RotationReceipt(path: folder.path, outcome: .failed(folder.failure)), isJSON: isJSON)
            summary.storeCount += 1
            summary.add(report)
            meter.clear()
            try Self.show(report, log, isJSON: isJSON)
        }
        summary.add(leftOut)
        summary.passedOver = list.passedOver.map(\.path)
        summary.add(to: &counts)
        try log?.end(summary)
        summary.receipts = log?.last
        try report(summary, console)
    }

    private func part(
        _ owner: Owner?, _ stores: [String], announcesStores: Bool, asksForNewKey: Bool, showsProgress: Bool
    ) -> PartedRotation.Part {
        PartedRotation.Part(
            owner: owner, paths: stores, jobCount: jobs, goesOn: keepGoing, isJSON: json,
            announcesStores: announcesStores, asksForKeys: keyForEachStore, asksForNewKey: asksForNewKey,
            showsProgress: showsProgress, limits: limits, manner: manner)
    }

    /// The rotation that this run goes on with; nil if it begins one. A rehearsal only reads of it.
    private func resumedRotation(_ log: ReceiptLog?) throws(Failure) -> ResumedRotation? {
        if let log { return resume ? ResumedRotation(log.history) : nil }
        // A file that isn't there yet would be made.
        guard let receipts, !Folder.isMissing(receipts) else { return nil }
        let history = try ReceiptFile(reading: receipts, expecting: nil).history
        return resume ? ResumedRotation(history) : nil
    }

    private var limits: RotationRun.Limits { RotationRun.Limits(end: until?.date, storeCount: maxStores) }

    private var manner: Rotation.Manner {
        Rotation.Manner(
            dropsOtherKeys: dropOtherKeys, isRehearsal: dryRun, isVerifying: verify,
            keepsKeysWhereTheyOpen: keepKeyWhereItOpens, waitingSeconds: wait?.seconds ?? 0)
    }

    private func sources() throws(Failure) -> RotationKeySources {
        let kept = try keepKey.map { (text) throws(Failure) in try KeySource(text, of: "--keep-key") }
        let named = try KeySource.given(key)
        guard named != nil || Terminal.isPresent else {
            throw Failure.usage("there is no key", hint: KeySource.hintWithoutTerminal)
        }
        let old = named ?? KeySource(origin: .prompt)
        try newKey.checkStandardInput([old] + kept)
        let usesInput = try newKey.usesStandardInput || ([old] + kept).contains(where: \.usesStandardInput)
        guard !stores.isStandardInput || !usesInput else {
            throw Failure.usage("standard input cannot be both a key and the list of stores")
        }
        let new = try newKey.source()
        return RotationKeySources(
            old: old, new: new, kept: kept, asksForNewLater: dryRun && !verify && new.isCommand)
    }

    /// Writes a receipt at once, as the process may not live to the end.
    private static func show(
        _ report: RotationReport, _ meter: RotationMeter, _ log: ReceiptLog?, isJSON: Bool
    ) throws {
        try meter.finish(report) { try show(report, log, isJSON: isJSON) }
    }

    private static func show(_ report: RotationReport, _ log: ReceiptLog?, isJSON: Bool) throws {
        let console = Console(isJSON: isJSON)
        try log?.finish(report)
        try console.printResult(report.line)
        try console.flush()
        if let failure = report.failure { console.printFailure(failure) }
    }

    private func report(_ summary: RotationRun.Summary, _ console: Console) throws(Failure) {
        try console.printResult(console.isJSON ? summary.json : summary.text)
        try console.flush()
        let otherCount =
            summary.untriedCount + summary.failures.count + summary.doneBeforeCount
            + summary.notDueCount
        let isPartlyDone = otherCount < summary.storeCount
        guard !summary.isCancelled else {
            throw Failure(
                message: "cancelled; each store is as it was or has the new key, and another run does the rest",
                code: "cancelled", status: 499, exit: .cancelled)
        }
        guard let first = summary.failures.first else {
            return try report(lacking: summary)
        }
        let count = summary.untriedCount
        let untried = count == 0 ? "" : ", and \(count) \(count.verb("was", "were")) not tried"
        throw Failure(
            message: "\(summary.failures.count.counted("store", of: summary.storeCount)) failed\(untried)",
            hint: summary.untriedCount == 0 ? nil : "--keep-going tries the others all the same",
            code: first.code, status: first.status, exit: isPartlyDone ? .partlyDone : first.exit)
    }

    /// Throws when stores are under the new key, and yet not all that a rotation promises.
    private func report(lacking summary: RotationRun.Summary) throws(Failure) {
        guard summary.differingCount == 0 else {
            let count = summary.differingCount
            throw Failure(
                message: "\(count.counted("store", of: summary.storeCount)) \(count.verb("has", "have")) the new key, "
                    + "but not exactly as asked",
                hint: "coffer rekey re-encrypts such a store; coffer key remove removes another key",
                code: "notAsAsked", status: 409, exit: .partlyDone)
        }
        guard summary.leftCount == 0 else {
            let count = summary.leftCount
            throw Failure(
                message: "\(count.counted("store", of: summary.storeCount)) \(count.verb("has", "have")) "
                    + "an old generation left",
                code: "oldGenerationLeft", status: 500, exit: .partlyDone)
        }
    }
}

/// A moment, such as `05:30`, the next time that a clock here shows that, or `2026-05-31T05:30:00Z` (RFC 3339).
struct PointInTime: ExpressibleByArgument {
    let date: Date

    init?(argument: String) {
        if let date = try? Date(argument, strategy: .iso8601) {
            self.date = date
            return
        }
        let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.count == 2 }), let hour = Int(parts[0]),
            let minute = Int(parts[1]),
            (0...23).contains(hour), (0...59).contains(minute)
        else { return nil }
        let time = DateComponents(hour: hour, minute: minute)
        guard let date = Calendar.current.nextDate(after: Date(), matching: time, matchingPolicy: .nextTime) else {
            return nil
        }
        self.date = date
    }
}

/// How long to wait, such as `30s`, `5m` or `1h`.
struct WaitingTime: ExpressibleByArgument {
    let seconds: Double

    init?(argument: String) {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600]
        guard let unit = argument.last.flatMap({ units[$0] }), let number = Int(argument.dropLast()),
            (0...1_000).contains(number)
        else { return nil }
        seconds = Double(number) * unit
    }
}
