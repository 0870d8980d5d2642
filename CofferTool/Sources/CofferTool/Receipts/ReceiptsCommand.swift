internal import ArgumentParser
internal import Foundation

struct ReceiptsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receipts", abstract: "Examine the receipts that coffer rotate --receipts wrote.",
        subcommands: [ReceiptsVerifyCommand.self])

    func run() throws { throw Failure.usage("there is no command", hint: "coffer receipts verify FILE") }
}

struct ReceiptsVerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check that nobody changed a file of receipts.",
        discussion: """
            Each line has the SHA-256 of the one before. If anything was changed, inserted or removed between two \
            lines, the command ends with 26 and names the first line that does not follow. No line follows the last \
            one: only --last, its SHA-256, proves its content, and that nothing was cut off behind it. coffer rotate \
            prints that SHA-256, and so does this command, which also says whether the last line is proven. If a \
            killed process left the last line incomplete, the command ends with 3; the next run removes that line. \
            Stores whose rotation began without a result are named; the next run that meets them records the result.
            """
    )

    @Argument(help: "The file.", completion: .file())
    var file: String

    @Option(
        help: ArgumentHelp(
            "The expected SHA-256 of the last line, or of an earlier one if more was written since.",
            valueName: "hex"))
    var last: String?

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    func run() throws {
        let console = Console(isJSON: json)
        if let last, last.count != 64 || !last.allSatisfy(\.isHexDigit) {
            throw Failure.usage("--last is the SHA-256 of a line: 64 hexadecimal digits")
        }
        let receipts = try ReceiptFile(reading: file, expecting: last?.lowercased())
        let history = receipts.history
        let isLastProven = receipts.chain.count == 0 || receipts.chain.last == last?.lowercased()
        let pending = history.pending.keys.map(\.path).sorted()
        if json {
            var line = JSONLine(type: "receipts")
            line.add("lines", receipts.chain.count)
            line.add("runs", history.runCount)
            line.add("rotated", history.rotatedCount)
            line.add("failed", history.failedCount)
            line.add("begun", pending)
            line.add("last", receipts.chain.last)
            line.add("lastIsProven", isLastProven)
            try console.printResult(line.finished)
        } else {
            try console.printResult(
                "\(receipts.chain.count.counted("line")), runs: \(history.runCount), stores rotated: \(history.rotatedCount), "
                    + "failed: \(history.failedCount), begun and not done: \(pending.count)")
            for path in pending { try console.printResult("begun  \(Console.printable(path))") }
            let state = isLastProven ? "as --last says" : "not proven: only --last proves it"
            try console.printResult("last   \(receipts.chain.last)  \(state)")
        }
        try console.flush()
        guard receipts.isExpected else {
            throw Failure(
                message:
                    "\(Console.printable(file)): no line has that SHA-256: lines were cut off or changed",
                code: "damaged", status: 500, exit: .damaged)
        }
        guard !receipts.hasCutLine else {
            throw Failure(
                message: "\(Console.printable(file)): its last line has no end", hint: "the next run removes it",
                code: "cutLine", status: 500, exit: .partlyDone)
        }
    }
}
