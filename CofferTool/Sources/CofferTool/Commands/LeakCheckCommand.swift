internal import ArgumentParser
internal import Coffer
internal import CofferTesting
internal import Foundation

struct LeakCheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "leakcheck",
        abstract: "Search a store's files for text that should not be readable, and report where it is.",
        usage: "coffer leakcheck <store> [<options>]",
        discussion: """
            Put a text into a store that stands nowhere else, and look for it: as UTF-8, as UTF-16 in both byte \
            orders, as hex, and as base64, in all files and in their names. No key is needed, and nothing is locked or \
            changed. The command ends with 26 when it finds a marker. A marker has at least 8 bytes, since shorter \
            ones occur by chance; the output names it by its number and doesn't repeat it.

            Any other folder or file can be searched, too, such as an app's logs. Links, FIFOs, sockets and devices \
            are named and skipped, and of a sparse file only its data are read. The command ends with 3 when it finds \
            no marker, but folders are nested too deeply to be searched.
            """
    )

    @Argument(help: "The store, or another folder or file.", completion: .file())
    var store: String

    @Option(
        help: ArgumentHelp(
            "A text to look for, visible to anyone who lists processes. Repeatable.", valueName: "text"))
    var marker: [String] = []

    @Option(
        help: ArgumentHelp(
            "A file with a text to look for on each line, or - for standard input. Repeatable.",
            valueName: "file"),
        completion: .file())
    var markerFile: [String] = []

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    func run() throws {
        let console = Console(isJSON: json)
        let scan = try scan()
        guard FileIdentity(path: store) != nil else {
            throw Failure(
                message: "\(store): there is no such file or folder (404)", code: "databaseNotFound", status: 404,
                exit: .noStore)
        }
        let report = try scan.search(URL(filePath: store).standardizedFileURL)
        for entry in report.skipped {
            try console.printResult(json ? entry.json : Console.printable(entry.description))
        }
        guard report.fileCount > 0 else {
            try console.flush()
            throw Failure(
                message: "\(store): it holds no file to search", code: "invalidArgument", status: 400,
                exit: .failed)
        }
        for leak in report.leaks { try console.printResult(json ? leak.json : Console.printable(leak.description)) }
        try console.printResult(json ? report.json : report.text)
        try console.flush()
        guard report.leaks.isEmpty else {
            throw Failure(
                message: "\(store): a marker is readable there", code: "markerFound", status: 500,
                exit: .damaged)
        }
        guard report.isComplete else {
            throw Failure(
                message: "\(store): no marker was found, but some of it was not searched", code: "partlySearched",
                status: 500, exit: .partlyDone)
        }
    }

    private func scan() throws(Failure) -> LeakScan {
        var markers = marker
        for path in markerFile {
            let contents =
                path == "-"
                ? try InputFile.contents(of: STDIN_FILENO, named: "standard input") : try InputFile.contents(of: path)
            guard let text = String(validating: contents, as: UTF8.self) else {
                throw Failure.usage("\(path): a marker is text in UTF-8, and this is not")
            }
            markers += text.split(whereSeparator: { $0 == "\n" || $0 == "\r\n" }).map(String.init)
        }
        guard !markers.isEmpty else {
            throw Failure.usage("there is nothing to look for", hint: "--marker TEXT, or --marker-file FILE")
        }
        do {
            return try LeakScan(for: markers)
        } catch {
            let number = markers.firstIndex { $0.utf8.count < LeakScan.minimumMarkerByteCount } ?? 0
            throw Failure.usage(
                "marker \(number + 1) has fewer than \(LeakScan.minimumMarkerByteCount) bytes, and would be found by chance "
                    + "alone")
        }
    }
}

extension LeakScan.Leak {
    fileprivate var json: String {
        var line = JSONLine(type: "leak")
        line.add("path", path)
        line.add("marker", marker + 1)
        line.add("encoding", encoding.rawValue)
        if let offset { line.add("offset", offset) }
        line.add("count", count)
        return line.finished
    }
}

extension LeakScan.Report {
    fileprivate var text: String {
        "searched \(fileCount) file\(fileCount == 1 ? "" : "s") of \(byteCount) bytes"
            + (holeByteCount == 0 ? "" : " and \(holeByteCount) bytes of holes, which hold nothing")
            + (skipped.isEmpty ? "" : ", skipped \(skipped.count)") + ": "
            + (leaks.isEmpty ? "nothing found" : "found in \(Set(leaks.map(\.path)).count)")
    }

    fileprivate var json: String {
        var line = JSONLine(type: "leakcheck")
        line.add("files", fileCount)
        line.add("bytes", byteCount)
        line.add("holeBytes", holeByteCount)
        line.add("skipped", skipped.count)
        line.add("leaks", leaks.count)
        return line.finished
    }
}
