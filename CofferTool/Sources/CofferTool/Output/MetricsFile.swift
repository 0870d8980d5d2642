internal import ArgumentParser
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A file of numbers about the last run of a command, which whoever watches this machine reads. Each run replaces it as a whole.
struct MetricsFile {
    private let path: String

    /// What each of them begins with.
    private static let beginning = Array("# HELP coffer_".utf8)

    /// - Throws: where it can't be written, before anything is done, or is something else, which would be lost.
    init(_ path: String) throws(Failure) {
        self.path = path
        try check()
    }

    private func check() throws(Failure) {
        let folder = Folder.parent(of: path)
        guard unsafe access(folder, W_OK | X_OK) == 0 else { throw Failure.system(errno, folder) }
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else {
            guard errno == ENOENT, !path.hasSuffix("/") else { throw Failure.system(errno, path) }
            return
        }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size == 0 || isOfARun() else {
            throw Failure.usage(
                "\(path): it is not the metrics of an earlier run, and is left alone", hint: "name another file")
        }
    }

    private func isOfARun() -> Bool {
        let descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: Self.beginning.count)
        return unsafe read(descriptor, &bytes, bytes.count) == bytes.count && bytes == Self.beginning
    }

    /// Does `body`, and writes what it has counted and how it ended, whether or not it throws.
    ///
    /// - Parameters:
    ///   - prefix: what the names begin with, such as `coffer_rotation`.
    ///   - subject: what a person calls it, such as `the rotation`.
    /// - Throws: what `body` throws; where that was done, and they can't be written, that a part could not be done.
    func recording(
        _ prefix: String, _ subject: String, isJSON: Bool, _ body: (_ counts: inout PrometheusText) throws -> Void
    ) throws {
        let begun = Date()
        var counts = PrometheusText()
        let result: Result<Void, any Error>
        do { result = .success(try body(&counts)) } catch { result = .failure(error) }
        var failure: Failure?
        if case .failure(let error) = result { failure = CofferCommand.failure(running: error) }
        do {
            try write(Self.frame(prefix, subject, begun: begun, failure?.exit ?? .ok) + counts.text)
        } catch {
            // What went wrong first is what counts.
            guard failure == nil else {
                Console(isJSON: isJSON).printNote("metrics were not written: \(Console.printable(error.message))")
                return try result.get()
            }
            throw Failure(
                message: "\(subject) is done, but its metrics were not written: \(error.message)", hint: error.hint,
                code: error.code, status: error.status, exit: .partlyDone)
        }
        try result.get()
    }

    private static func frame(_ prefix: String, _ subject: String, begun: Date, _ exit: ExitStatus) -> String {
        var text = PrometheusText()
        text.addGauge(
            prefix + "_info", "The version of coffer that did \(subject).",
            [(["version": CofferCommand.configuration.version], 1)])
        let end = Date()
        text.addGauge(
            prefix + "_start_timestamp_seconds", "When \(subject) began, in seconds since 1970.",
            begun.timeIntervalSince1970)
        text.addGauge(
            prefix + "_end_timestamp_seconds", "When \(subject) ended, in seconds since 1970.",
            end.timeIntervalSince1970)
        text.addGauge(
            prefix + "_duration_seconds", "How long \(subject) took.", max(0, end.timeIntervalSince(begun)))
        text.addGauge(
            prefix + "_exit_status", "What the command ended with: 0 when all was done, see coffer --help.",
            Int(exit.rawValue))
        return text.text
    }

    /// Puts it in the place of the last run's, so that nobody reads a part of it. All users may read it.
    private func write(_ text: String) throws(Failure) {
        let folder = Folder.parent(of: path)
        // Another name than the collector reads.
        let temporary = "\(folder)/.coffer-\(UUID().uuidString.lowercased()).tmp"
        // It may have become something else since.
        try check()
        try NewFile.write(Array(text.utf8), to: temporary, mode: 0o644)
        guard unsafe rename(temporary, path) == 0 else {
            let failure = Failure.system(errno, path)
            unsafe unlink(temporary)
            throw failure
        }
    }
}

/// Numbers in Prometheus's text exposition format, as a scrape or node_exporter's textfile collector reads them.
struct PrometheusText {
    private(set) var text = ""

    /// Adds a number that goes up and down.
    mutating func addGauge(_ name: String, _ help: String, _ value: Double) {
        addGauge(name, help, [([:], value)])
    }

    mutating func addGauge(_ name: String, _ help: String, _ value: Int) { addGauge(name, help, Double(value)) }

    /// Adds a number for each of some labels.
    ///
    /// - Parameters:
    ///   - name: by Prometheus's rules: what it belongs to, what it counts, and the unit, which is a base unit.
    ///   - help: what it is, in a line.
    mutating func addGauge(_ name: String, _ help: String, _ samples: [(labels: [String: String], value: Double)]) {
        text += "# HELP \(name) \(Self.escaped(help))\n# TYPE \(name) gauge\n"
        for sample in samples {
            let labels = sample.labels.sorted { $0.key < $1.key }.map { label in
                "\(label.key)=\"\(Self.escaped(label.value).replacing("\"", with: "\\\""))\""
            }
            let suffix = labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}"
            text += "\(name)\(suffix) \(Self.number(sample.value))\n"
        }
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
    }

    /// Whole numbers without a fraction, others as they are.
    private static func number(_ value: Double) -> String {
        Int(exactly: value).map(String.init) ?? "\(value)"
    }
}

/// Where numbers about a run go.
struct MetricsArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Write metrics of this run to this file, for node_exporter's textfile collector.",
            discussion: """
                The file is replaced as a whole at the end of the run, however it ends (if only that fails, the \
                command ends with 3). It has the times of begin and end, the exit status, and how many stores there \
                are of each kind, but no paths or keys. All users may read it. The collector reads files called \
                NAME.prom.
                """,
            valueName: "file"),
        completion: .file())
    var metrics: String?

    /// Does `body` and writes what it has counted, where that was asked for. See `MetricsFile`.
    ///
    /// - Parameter receipts: a file that the command writes, too.
    func recording(
        _ prefix: String, _ subject: String, receipts: String? = nil, isJSON: Bool,
        _ body: (inout PrometheusText) throws -> Void
    ) throws {
        guard let metrics else {
            var unused = PrometheusText()
            return try body(&unused)
        }
        guard metrics != receipts else { throw Failure.usage("--metrics and --receipts name the same file") }
        try MetricsFile(metrics).recording(prefix, subject, isJSON: isJSON, body)
    }
}
