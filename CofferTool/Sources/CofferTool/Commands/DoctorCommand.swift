internal import ArgumentParser
internal import Coffer
internal import Foundation

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check whether this system can keep encrypted stores.",
        discussion: """
            It reports the versions of libraries, makes stores in its own folder, which it removes, searches the disk \
            for their content, and measures how long a password and an fsync take. It ends with 14 if encryption does \
            not work, and names every problem.
            """
    )

    @Argument(
        help: "The folder for stores; the system's folder for temporary files by default.",
        completion: .directory)
    var folder: String?

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    func run() throws {
        let console = Console(isJSON: json)
        var findings: [Finding] = []
        func report(_ new: [Finding]) throws {
            findings += new
            for finding in new { try console.printResult(json ? finding.json : finding.text) }
            try console.flush()
        }
        if let folder, Folder.isMissing(folder) {
            throw Failure.noFolder(at: folder)
        }
        Interruption.watch()
        try report([.ok("coffer", CofferCommand.configuration.version), SystemChecks.system()])
        try report(SystemChecks.libraries())
        try report(SystemChecks.memory() + [SystemChecks.crashReports()])
        // Without a library there are no stores to look at, and without SQLCipher only those of sealed pages.
        if let libraries = try? LoadedLibraries(),
            libraries.cipherVersion == nil || libraries.keepsTemporaryDataInMemory
        {
            var place = folder ?? FileManager.default.temporaryDirectory.path(percentEncoded: false)
            if Owner.isRoot {
                let (path, others) = try Owner.folder(at: place)
                try Owner.act(asOneOf: others)
                place = path
            }
            let checks = try StoreChecks(in: place, libraries.cipherVersion == nil ? [.sealed] : [.sqlite, .sealed])
            for check in checks.all {
                try Interruption.check()
                try report([Self.finding(check.0, check.1)])
            }
        }
        let failures = findings.compactMap(\.failure)
        if json {
            var line = JSONLine(type: "doctor")
            line.add("problems", failures.count)
            try console.printResult(line.finished)
            try console.flush()
        }
        guard let first = failures.first else { return }
        throw Failure(
            message: "\(failures.count) problem\(failures.count == 1 ? "" : "s") found", hint: first.hint,
            code: first.code, status: first.status, exit: first.exit)
    }

    private static func finding(_ name: String, _ check: () throws -> Finding) -> Finding {
        do {
            return try check()
        } catch let failure as Failure {
            return .problem(name, failure)
        } catch let error as CofferError {
            return .problem(name, Failure(error))
        } catch {
            return .problem(name, Failure(describing: error, subject: name))
        }
    }
}

/// What one check of a system found.
struct Finding {
    enum Verdict: String {
        case ok
        /// Worth knowing, and in nobody's way.
        case note
        /// Stores don't work here, or not safely.
        case problem
    }

    let check: String
    let verdict: Verdict
    let detail: String
    /// What it would have failed a command with.
    var failure: Failure?

    static func ok(_ check: String, _ detail: String) -> Finding {
        Finding(check: check, verdict: .ok, detail: detail)
    }

    static func note(_ check: String, _ detail: String) -> Finding {
        Finding(check: check, verdict: .note, detail: detail)
    }

    static func problem(_ check: String, _ failure: Failure) -> Finding {
        Finding(check: check, verdict: .problem, detail: failure.message, failure: failure)
    }

    var text: String {
        let column = check + String(repeating: " ", count: max(1, 16 - check.count))
        let mark =
            switch verdict {
            case .ok: ""
            case .note: "note: "
            case .problem: "PROBLEM: "
            }
        return column + mark + Console.printable(detail)
    }

    var json: String {
        var line = JSONLine(type: "check")
        line.add("check", check)
        line.add("verdict", verdict.rawValue)
        line.add("detail", detail)
        return line.finished
    }
}
