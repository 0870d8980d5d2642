/// What one run found.
struct Findings {
    var rows: [Row] = []
    var series: [Series] = []

    static func += (sum: inout Findings, more: Findings) {
        sum.rows += more.rows
        sum.series += more.series
    }
}

/// Rows that are measured together.
struct RowGroup {
    /// `--only` looks for a part of it.
    let name: String
    let measure: @Sendable (Bench) throws -> Findings

    /// With rows alone.
    private init(_ name: String, rows: @escaping @Sendable (Bench) throws -> [Row]) {
        self.name = name
        measure = { Findings(rows: try rows($0)) }
    }

    private init(_ name: String, _ measure: @escaping @Sendable (Bench) throws -> Findings) {
        self.name = name
        self.measure = measure
    }

    /// Of `--engines`, which measures nothing else.
    static let engines = RowGroup("engines", rows: { try EngineRows($0).rows() })

    /// All others, in the order of a report.
    static let all = [
        RowGroup("document insert", rows: { try DocumentRows($0).inserting() }),
        RowGroup("document read", rows: { [try DocumentRows($0).reading()] }),
        RowGroup("document list", rows: { try DocumentRows($0).listing() }),
        RowGroup("document update", rows: { [try DocumentRows($0).updating()] }),
        RowGroup("document single", rows: { [try DocumentRows($0).singles()] }),
        RowGroup("key-value", rows: { try KeyValueRows($0).rows() }),
        RowGroup("attachment write", rows: { [try ManyAttachments(long: $0).writing()] }),
        RowGroup("attachment read", rows: { [try ManyAttachments(long: $0).reading()] }),
        RowGroup("attachment short", rows: { [try ManyAttachments(short: $0).writingShort()] }),
        RowGroup("opening", rows: { [try OpeningRow($0).row()] }),
        RowGroup("idle databases", rows: { try IdleDatabases($0).rows() }),
        RowGroup("key change", rows: { try KeyChangeRow($0).rows() }),
        RowGroup("key slot", rows: { [try KeySlotRow($0).row()] }),
        RowGroup("large attachment", { try LargeAttachment($0).findings() }),
        RowGroup("import", rows: { [try ImportRow($0).row()] }),
        RowGroup("view", rows: { try ViewRows($0).rows() }),
        RowGroup("search", rows: { try SearchRows($0).rows() }),
        RowGroup("query", rows: { try ElementRows($0).rows() }),
        RowGroup("watching", rows: { [try Watching($0).row()] }),
        RowGroup("growth of revisions", rows: { try RevisionGrowth($0).rows() }),
        RowGroup("growth of documents", { try DocumentGrowth($0).findings() }),
        RowGroup("growth of attachments", { try AttachmentGrowth($0).findings() }),
        RowGroup("growth of readers", { try ReaderGrowth($0).findings() }),
    ]
}
