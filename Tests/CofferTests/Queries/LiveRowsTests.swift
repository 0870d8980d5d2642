#if canImport(Observation)
import Foundation
import Observation
import Testing

@testable import Coffer

@Suite("Rows that observers follow") @MainActor struct LiveRowsTests {
    let stores = TestStores()

    private func wait(_ live: LiveRows<SavedRevision>, until isDone: () -> Bool) async {
        while !isDone() {
            await withCheckedContinuation { continuation in
                withObservationTracking {
                    _ = (live.rows.count, live.isLoaded, live.error)
                } onChange: {
                    continuation.resume()
                }
            }
            await Task.yield()
        }
    }

    @Test("Observers learn of the rows, and of what changes them", .timeLimit(.minutes(30))) func follows() async throws
    {
        let database = try stores.open()
        let live = LiveRows(database.liveDocuments(DocumentQuery()))
        #expect(live.rows.isEmpty && !live.isLoaded)
        await wait(live) { live.isLoaded }
        #expect(live.rows.isEmpty && live.error == nil)
        try await database.save(json: Data("{}".utf8), withID: "a")
        await wait(live) { !live.rows.isEmpty }
        #expect(live.rows.map(\.documentID) == ["a"])
    }

    @Test("An observer that lets go of rows follows nothing any more") func ends() async throws {
        let database = try stores.open()
        weak var gone: LiveRows<SavedRevision>?
        do {
            let live = LiveRows(database.liveDocuments(DocumentQuery()))
            gone = live
            await wait(live) { live.isLoaded }
        }
        #expect(gone == nil)
    }
}
#endif
