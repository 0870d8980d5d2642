internal import Foundation

@main
enum Main {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            if arguments == ["--help"] { return print(Settings.usage) }
            if try LargeAttachment.runAsChild(arguments) { return }
            let settings = try Settings(arguments)
            let report = try run(Bench(settings))
            print(settings.writesJSON ? try report.json : report.table)
        } catch let error as UsageError {
            stop("\(error.text)\n\(Settings.usage)", status: 64)
        } catch {
            stop("\(error)", status: 1)
        }
    }

    private static func run(_ bench: Bench) throws -> Report {
        var report = Report(machine: bench.machine, isQuick: bench.settings.isQuick)
        func wants(_ row: String) -> Bool {
            bench.settings.only.isEmpty || bench.settings.only.contains { row.contains($0) }
        }
        if wants("attachment write, 1 MB") || wants("attachment read, 1 MB") {
            let attachments = ManyAttachments(bench, count: bench.size(200, quick: 40), byteCount: 1_000_000)
            if wants("attachment write, 1 MB") {
                bench.say("writing attachments …")
                report.rows.append(try attachments.writing())
            }
            if wants("attachment read, 1 MB") {
                bench.say("reading attachments …")
                report.rows.append(try attachments.reading())
            }
        }
        if wants("attachment write, 10 KB") {
            bench.say("writing short attachments …")
            let attachments = ManyAttachments(bench, count: bench.size(2_000, quick: 300), byteCount: 10_000)
            report.rows.append(try attachments.writingShort())
        }
        if wants("key change") {
            bench.say("changing keys …")
            let change = try KeyChangeRow(
                bench, documentCount: bench.size(400_000, quick: 20_000), attachmentCount: bench.size(1_000, quick: 60))
            report.rows += try change.rows()
        }
        if wants("growth") { report.rows += try Growth(bench).rows() }
        if wants("watching") { report.rows.append(try Watching(bench).row()) }
        let documentRows = DocumentRows.names.filter { wants("document \($0)") }
        if !documentRows.isEmpty { report.rows += try DocumentRows(bench).rows(documentRows) }
        let viewRows = ["indexing", "ranges", "live"].filter { wants("view: \($0)") }
        if !viewRows.isEmpty { report.rows += try ViewRows(bench).rows(viewRows) }
        let (memory, oneByte) = (wants("memory"), wants("one byte"))
        if memory || oneByte {
            bench.say("a large attachment …")
            let large = LargeAttachment(bench, mebibyteCount: bench.size(1024, quick: 128))
            report.rows += try large.rows(memory: memory, oneByte: oneByte)
        }
        if report.rows.isEmpty { throw UsageError(text: "no row has that in its name") }
        return report
    }

    private static func stop(_ text: String, status: Int32) -> Never {
        FileHandle.standardError.write(Data("bench: error: \(text)\n".utf8))
        exit(status)
    }
}
