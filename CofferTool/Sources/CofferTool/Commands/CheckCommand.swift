internal import ArgumentParser
internal import Coffer

struct CheckCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Verify a whole store, and report damage.",
        usage: "coffer check <store> [<options>]",
        discussion: """
            The command writes and repairs nothing. It checks a store that no longer opens as far as possible. Damage \
            goes to standard output, one line for each cause with the first pages, documents or attachments that it \
            affects, followed by how much can be read; with --verbose or --json each of them has its own line. The \
            command ends with 26 then, and with 0 if the store is sound. A page that is all zeros was never written, \
            or was lost afterwards: see docs/DURABILITY.md. Links, FIFOs, sockets and devices in the store are named \
            and skipped, and holes of a sparse file are not read. Remains of a key change that was killed are not \
            damage: standard error names them, with their size and the command that removes them.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Option(
        help: ArgumentHelp(
            "What to check: keys, pages, documents, attachments or everything.",
            discussion: """
                Each includes the ones before it. keys: MANIFEST. pages: the MAC of every page of the database and its \
                write-ahead log. documents: tables, indexes and every document. attachments: that each file exists, \
                has its whole length, and is the right one. everything: every byte of them.
                """))
    private var level = Level.everything

    @Flag(help: "Report progress in lines if there is no terminal.")
    var progress = false

    @Flag(help: "List each damaged page, document and attachment.")
    var verbose = false

    func run(_ console: Console) throws {
        Interruption.watch()
        let path = try arguments.path()
        let manager = try Manager(directory: path.folder)
        let key = try arguments.openingKey(manager)
        let meter = WorkMeter(console, isAsked: progress)
        let result: Verification
        do {
            defer { meter.clear() }
            result = try Interruptible.run { [level = level.verificationLevel] in
                do {
                    return try await manager.verifyDatabase(
                        named: path.databaseName, encryptionKey: key, level: level
                    ) { meter.show($0) }
                } catch let error as CofferError where error.code == .busy {
                    let store = try StoreOpening(manager: manager, store: path, key: key).openElsewhere(
                        insteadOf: error)
                    return try await store.verified(level) { meter.show($0) }
                }
            }
        }
        let summary = FindingSummary(result.findings)
        if console.isJSON {
            for finding in result.findings { try console.printResult(finding.json()) }
        } else {
            let lines = verbose ? result.findings.map(\.description) : summary.lines
            for line in lines { try console.printResult(Console.printable(line)) }
        }
        for entry in result.skipped {
            try console.printResult(console.isJSON ? entry.json : Console.printable(entry.description))
        }
        try console.printResult(console.isJSON ? result.json : result.text)
        result.oldGenerations.warn(of: arguments.store, console)
        guard result.isSound else {
            try console.flush()
            let count = result.findings.count
            let more = summary.isShorter && !verbose && !console.isJSON ? "; --verbose lists all of it" : ""
            throw Failure(
                message: "\(path.fileName): it is damaged: \(count) finding\(count == 1 ? "" : "s")",
                hint: result.hint + more, code: "damaged", status: 500, exit: .damaged)
        }
    }
}

/// How much is looked at, as it is written on the command line.
private enum Level: String, ExpressibleByArgument, CaseIterable {
    case keys, pages, documents, attachments, everything

    var verificationLevel: VerificationLevel {
        switch self {
        case .keys: .keys
        case .pages: .pages
        case .documents: .documents
        case .attachments: .attachments
        case .everything: .everything
        }
    }
}

extension Verification {
    /// What to do about damage.
    fileprivate var hint: String {
        findings.contains { $0.kind == .manifest }
            ? "coffer key restore puts back a MANIFEST that coffer key backup kept"
            : "coffer salvage copies all that can still be read to a new store; restore the rest from a backup"
    }

    fileprivate var text: String {
        var lines = [isSound ? "sound" : "damaged"]
        if level >= .pages { lines.append("pages        \(pageCount)") }
        if level >= .documents {
            lines.append("documents    \(documentCount)\(isSound ? "" : " can be read")")
            lines.append("revisions    \(revisionCount)\(isSound ? "" : " can be read")")
        }
        if level >= .attachments {
            lines.append("attachments  \(attachmentCount), of \(attachmentByteCount) bytes")
            if missingContentCount > 0 { lines.append("not here     \(missingContentCount), left out by a pull") }
        }
        return lines.joined(separator: "\n")
    }

    fileprivate var json: String {
        var line = JSONLine(type: "check")
        line.add("level", "\(level)")
        line.add("sound", isSound)
        line.add("findings", findings.count)
        line.add("skipped", skipped.count)
        line.add("oldGenerations", json: oldGenerations.json)
        if level >= .pages { line.add("pages", pageCount) }
        if level >= .documents {
            line.add("documents", documentCount)
            line.add("revisions", revisionCount)
        }
        if level >= .attachments {
            line.add("attachments", attachmentCount)
            line.add("attachmentBytes", attachmentByteCount)
            line.add("missingContents", missingContentCount)
        }
        return line.finished
    }
}

/// Findings by what is wrong, a line for each: two damaged pages can bring hundreds, since what hangs on them can't be read.
struct FindingSummary {
    /// Those of one kind with the same words, up to the numbers in them.
    private struct Group {
        let first: VerificationFinding
        var subjects: [String]
        var count = 1
    }

    private struct Cause: Hashable {
        let kind: VerificationFinding.Kind
        let words: String
    }

    private var groups: [Group] = []
    private var places: [Cause: Int] = [:]

    /// So many of those that have the same cause are named.
    private static let namedCount = 3

    init(_ findings: [VerificationFinding]) {
        for finding in findings {
            let cause = Cause(kind: finding.kind, words: Self.withoutNumbers(finding.detail))
            if let place = places[cause] {
                groups[place].count += 1
                guard groups[place].subjects.count < Self.namedCount else { continue }
                if !groups[place].subjects.contains(finding.subject) { groups[place].subjects.append(finding.subject) }
            } else {
                places[cause] = groups.count
                groups.append(Group(first: finding, subjects: [finding.subject]))
            }
        }
    }

    /// Whether there are findings without a line of their own.
    var isShorter: Bool { groups.contains { $0.count > 1 } }

    /// A line for each cause, in the order in which the first of them was found.
    var lines: [String] {
        groups.map { group in
            let subject = group.first.subject, detail = group.first.detail
            guard group.count > 1 else { return "\(subject): \(detail)" }
            // What SQLite says of its pages is all about the same thing.
            guard group.subjects.count > 1 else {
                return "\(subject): \(detail), and \(group.count - 1) more like this"
            }
            let names = group.subjects.joined(separator: ", ")
            let restCount = group.count - group.subjects.count
            let rest = restCount > 0 ? " and \(restCount) more" : ""
            return "\(names)\(rest): \(detail)"
        }
    }

    private static func withoutNumbers(_ text: String) -> String {
        var words = ""
        for character in text {
            if !character.isNumber { words.append(character) } else if words.last != "0" { words.append("0") }
        }
        return words
    }
}

extension VerificationFinding {
    /// A line of JSON. `isLost` is whether a salvage could bring it; nil if nobody has tried.
    func json(isLost: Bool? = nil) -> String {
        var line = JSONLine(type: "finding")
        line.add("kind", kind.description)
        if let isLost { line.add("lost", isLost) }
        line.add("subject", subject)
        line.add("detail", detail)
        if let page { line.add("page", page) }
        if let documentID { line.add("id", documentID) }
        if let digest { line.add("digest", digest) }
        return line.finished
    }
}

extension SkippedEntry {
    /// A line of JSON.
    var json: String {
        var line = JSONLine(type: "skipped")
        line.add("path", path)
        line.add("detail", reason)
        return line.finished
    }
}
