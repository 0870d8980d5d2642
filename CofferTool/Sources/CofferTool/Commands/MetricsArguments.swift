internal import ArgumentParser

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
