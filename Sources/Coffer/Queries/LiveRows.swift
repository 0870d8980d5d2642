#if canImport(Observation)
internal import CofferRecords
internal import CofferSealing
public import Observation

/// The rows of a live query as a value that observers follow, such as a SwiftUI view.
///
/// ```swift
/// @State private var tasks = LiveRows(database.liveDocuments(query))
/// var body: some View { Text("\(tasks.rows.count) tasks") }
/// ```
///
/// All rows are held in memory. It follows the database for as long as somebody holds it, and reads where no view waits for it.
@MainActor
@Observable
public final class LiveRows<Row: Sendable> {
    /// The rows, as of the latest commit that changed them. None before they were first read: see ``isLoaded``.
    public private(set) var rows: [Row] = []

    /// Whether the rows were read at least once.
    public private(set) var isLoaded = false

    /// The error that ended it; nil while it continues, and after the database was closed. The rows stay.
    public private(set) var error: CofferError?

    @ObservationIgnored private var following: Task<Void, Never>?

    /// Follows `query` from here on.
    public init(_ query: LiveQuery<Row>) {
        following = Task { [weak self] in
            do {
                for try await result in query {
                    let rows = try await Self.read(result.rows)
                    self?.take(rows)
                }
            } catch let error as CofferError {
                self?.error = error
            } catch {
                self?.error = CofferError(.cancelled)
            }
        }
    }

    deinit { following?.cancel() }

    private func take(_ rows: [Row]) {
        self.rows = rows
        isLoaded = true
    }

    /// Away from the main thread.
    @concurrent
    private nonisolated static func read(_ source: Rows<Row>) async throws -> [Row] {
        var rows: [Row] = []
        for try await row in source { rows.append(row) }
        return rows
    }
}
#endif
