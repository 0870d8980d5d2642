import Coffer
@testable import CofferCouchbaseLite
import CofferSealing
import Foundation
import Testing

/// Reading a source's revisions while others are saved.
@Suite("Reading a source's revisions ahead") struct RevisionReaderTests {
    private func open(_ store: SourceStore) throws -> Source {
        try Source(
            SourceLocation(path: store.url.path(percentEncoded: false)), nil, CouchbaseLiteImportOptions(),
            scratchPath: store.folder.appending(path: "scratch").path(percentEncoded: false),
            ImportMonitor(from: .start))
    }

    /// Runs `body` with a reader of a source that has several batches.
    private func withReader(_ body: (RevisionReader, Source) throws -> Void) throws {
        let store = try SourceStore.ofSeveralBatches()
        let source = try open(store)
        defer { source.close() }
        let reader = RevisionReader(source.database)
        defer { reader.stop() }
        try body(reader, source)
    }

    @Test("A reader gives out each revision once, and none after the last, however often it is asked")
    func wholeSource() throws {
        try withReader { reader, _ in
            var sequences: [Int64] = []
            while case let revisions = try reader.next(), !revisions.isEmpty {
                #expect(revisions.count <= 1_000)
                sequences += revisions.map(\.read.revision.sequence)
            }
            #expect(sequences == Array(1...2_500))
            for _ in 0..<3 { #expect(try reader.next().isEmpty) }
        }
    }

    @Test("While a reader reads ahead, another thread can ask the same source")
    func question() throws {
        try withReader { reader, source in
            while case let revisions = try reader.next(), !revisions.isEmpty {
                for revision in revisions {
                    let ancestor = try source.database.withLock { try $0.ancestor(revision.read.revision.sequence) }
                    #expect(ancestor?.document == revision.read.revision.document)
                }
            }
        }
    }

    @Test("A reader that is stopped reads no more, so that the source can be closed")
    func stopped() throws {
        let store = try SourceStore.ofSeveralBatches()
        for asked in 0...2 {
            let source = try open(store)
            let reader = RevisionReader(source.database)
            for _ in 0..<asked { #expect(try !reader.next().isEmpty) }
            reader.stop()
            source.close()
        }
    }
}
