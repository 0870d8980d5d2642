internal import ArgumentParser
internal import Coffer
internal import Foundation

struct AuditCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Inspect many stores without their keys, and report which violate the rules.",
        usage: "coffer audit <stores> [<options>]",
        discussion: """
            The command opens and changes no store. For each it reports whether and how it is encrypted, its UUID and \
            generation, when its data key was made, each key's kind, cost and date, its size, what an interrupted key \
            change has left, whether this user may write to it, and, if the system tells, who has it open.

            A data key is at least as old as reported: it was made with the store's files and its first key, and only \
            a copy whose first key was replaced hides that. coffer rekey and coffer rotate make a new one; coffer key \
            does not.

            The command ends with 3 when a store violates the rules of the options, or when a store or a folder can't \
            be read, and names each; with 10 if the folder or the list doesn't exist. A folder without stores is 0.
            """
    )

    @OptionGroup var stores: StoreListArguments

    @Flag(help: "Report stores that are not encrypted.")
    var encrypted = false

    @Option(
        help: ArgumentHelp(
            "Report stores with an older data key: a number with d for days, h for hours, or w for weeks, such as 90d.",
            valueName: "age"))
    var olderThan: Age?

    @Option(
        help: ArgumentHelp(
            """
            Report stores that a password with a cheaper derivation opens: scrypt:N:r:p, such as scrypt:131072:8:1, or \
            pbkdf2:ITERATIONS. Repeatable. PBKDF2 costs less than any scrypt.
            """, valueName: "cost"))
    var weakerThan: [DerivationCost] = []

    @OptionGroup var metrics: MetricsArguments

    @Flag(help: "List only stores that violate a rule.")
    var quiet = false

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    func run() throws {
        try metrics.recording("coffer_audit", "the audit", isJSON: json) { try audit(&$0) }
    }

    private func audit(_ counts: inout PrometheusText) throws {
        let console = Console(isJSON: json)
        let list = try stores.list(console)
        Interruption.watch()
        let policy = AuditPolicy(mustBeEncrypted: encrypted, oldest: olderThan, weakest: weakerThan)
        let (holders, now) = (LockHolders(), Date())
        var summary = AuditSummary(passedOver: list.passedOver.map(\.path))
        for path in list.paths {
            try Interruption.check()
            do {
                let store = try StoreAudit(path, holders: holders)
                let violations = policy.violations(of: store, at: now)
                summary.add(store, violations, at: now)
                if !quiet || !violations.isEmpty {
                    try console.printResult(
                        json ? store.json(violations, at: now) : store.text(violations, at: now))
                }
            } catch {
                let failure = Failure(ofOneStore: error, path)
                summary.failures.append(failure)
                try console.printResult(json ? failure.storeLine(path) : "unreadable  \(Console.printable(path))")
                console.printFailure(failure)
            }
        }
        for folder in list.unreadable {
            summary.failures.append(folder.failure)
            try console.printResult(
                json ? folder.failure.storeLine(folder.path) : "unreadable  \(Console.printable(folder.path))")
            console.printFailure(folder.failure)
        }
        summary.add(to: &counts)
        try console.printResult(json ? summary.json : summary.text)
        try console.flush()
        try summary.check()
    }
}

/// What came of all stores together.
struct AuditSummary {
    /// What the list has beside stores.
    let passedOver: [String]
    private var storeCount = 0
    private var encryptedCount = 0
    private var openCount = 0
    private var leftoverCount = 0
    private var violatingCount = 0
    private var counts: [AuditPolicy.Violation: Int] = [:]
    private var oldestAge: Duration?
    var failures: [Failure] = []

    init(passedOver: [String]) { self.passedOver = passedOver }

    mutating func add(_ store: StoreAudit, _ violations: [AuditPolicy.Violation], at now: Date) {
        if let age = store.info.dataKeyAge(at: now) { oldestAge = max(oldestAge ?? .zero, age) }
        storeCount += 1
        if store.info.isEncrypted { encryptedCount += 1 }
        if !store.holders.isEmpty { openCount += 1 }
        if store.leftovers?.isEmpty == false { leftoverCount += 1 }
        if !violations.isEmpty { violatingCount += 1 }
        for violation in violations { counts[violation, default: 0] += 1 }
    }

    /// What a file of metrics says.
    func add(to metrics: inout PrometheusText) {
        metrics.addGauge("coffer_audit_stores", "Stores that the last audit looked at.", storeCount)
        metrics.addGauge("coffer_audit_unreadable_stores", "Stores that the last audit could not read.", failures.count)
        metrics.addGauge("coffer_audit_encrypted_stores", "Stores that are encrypted.", encryptedCount)
        metrics.addGauge("coffer_audit_open_stores", "Stores that a process has open.", openCount)
        metrics.addGauge(
            "coffer_audit_stores_with_old_generations",
            "Stores in which a key change left something that it should have removed.", leftoverCount)
        metrics.addGauge(
            "coffer_audit_violating_stores", "Stores that violate a rule, by rule.",
            AuditPolicy.Violation.allCases.map { (["violation": $0.rawValue], Double(counts[$0] ?? 0)) })
        if let oldestAge {
            metrics.addGauge(
                "coffer_audit_oldest_data_key_age_seconds", "Minimum age of the oldest data key.",
                oldestAge / .seconds(1))
        }
    }

    var text: String {
        let parts = [
            (encryptedCount, "encrypted"), (openCount, "open"), (leftoverCount, "with an old generation left"),
            (violatingCount, "violating"), (failures.count, "unreadable"),
            (passedOver.count, "skipped"),
        ]
        let words = parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        let total = storeCount + failures.count
        return total.counted("store") + (words.isEmpty ? "" : ": " + words.joined(separator: ", "))
    }

    var json: String {
        var line = JSONLine(type: "summary")
        line.add("stores", storeCount + failures.count)
        line.add("encrypted", encryptedCount)
        line.add("open", openCount)
        line.add("oldGenerationsLeft", leftoverCount)
        line.add("violating", violatingCount)
        for violation in AuditPolicy.Violation.allCases { line.add(violation.rawValue, counts[violation] ?? 0) }
        line.add("unreadable", failures.count)
        line.add("passedOver", passedOver)
        return line.finished
    }

    /// - Throws: where a store is not as it should be, or could not be read.
    func check() throws(Failure) {
        if let first = failures.first, storeCount == 0 {
            throw Failure(message: "no store could be read", code: first.code, status: first.status, exit: first.exit)
        }
        guard violatingCount == 0 else {
            throw Failure(
                message: "\(violatingCount.counted("store", of: storeCount + failures.count)) "
                    + violatingCount.verb("violates a rule", "violate a rule"),
                code: "policyNotMet", status: 409, exit: .partlyDone)
        }
        guard let first = failures.first else { return }
        throw Failure(
            message: "\(failures.count.counted("store", of: storeCount + failures.count)) could not be read",
            code: first.code, status: first.status, exit: .partlyDone)
    }
}
