import CofferFaults
import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferVault

/// Content that is written beside any transaction, while something happens to the store.
@Suite("Staging in the middle of something else")
struct StagingMeetingTests {
    /// Where the one who stages is held.
    enum Place: String, CaseIterable, Sendable {
        /// With a file that nothing was written to, and that nobody knows of yet.
        case created
        case halfWritten
    }

    private static let bytes = AttachmentTests.bytes(200_000)

    /// A store, and what holds the first who makes a file in it once it is armed.
    private static func held(_ stop: Hold) -> TestStores {
        TestStores(
            fileSystem: RecordingFileSystem(afterStep: { _, name in if name.hasPrefix("create ") { stop.pause() } }))
    }

    /// Writes the content in two halves, and saves it.
    private static func save(
        _ id: String, in database: Database, holding stop: Hold, at place: Place,
        _ begin: (Database) throws -> IncomingContent
    ) throws {
        if place == .created { stop.arm() }
        let content = try begin(database)
        try content.write(Array(bytes.prefix(100_000)))
        if place == .halfWritten {
            stop.arm()
            stop.pause()
        }
        try content.write(Array(bytes.dropFirst(100_000)))
        let draft = try database.document(withID: id).newRevision()
        draft.setAttachment(named: "a", contentType: nil, try content.finish())
        try draft.save()
    }

    @Test(
        "Content that is staged keeps nothing waiting: it is saved in what comes after, or finds the store closed",
        arguments: Place.allCases, Moment.allCases)
    func staging(place: Place, moment: Moment) throws {
        let stop = Hold(isArmed: false)
        let stores = Self.held(stop)
        let database = try stores.open()
        let staging = Side {
            try Self.save("a", in: database, holding: stop, at: place) { try $0.beginContent() }
        }
        try stop.wait()
        try Side { try moment.act(on: database, in: stores) }.outcome()
        // The old generation stays for it.
        if moment == .keyChange { #expect(try stores.generations().count == 2) }
        stop.release()
        if Moment.ends.contains(moment) {
            #expect(thrown { try staging.outcome() }?.code == .closed)
            try moment.expectSound(stores, holds: [:])
        } else {
            try staging.outcome()
            #expect(try eventually { try stores.generations().count == 1 })
            try moment.expectSound(stores, closing: database, holds: ["a": Self.bytes])
        }
    }

    @Test(
        "Content that may take long is given up by a close and a key change; one that had only begun begins again",
        arguments: Place.allCases, Moment.allCases)
    func longContent(place: Place, moment: Moment) throws {
        let stop = Hold(isArmed: false)
        let stores = Self.held(stop)
        let database = try stores.open()
        let loading = Side {
            try Self.save("a", in: database, holding: stop, at: place) { database in
                let content = try database.beginLongContent()
                if place == .created && moment == .keyChange {
                    let newest = try #require(try stores.generations().sorted().last)
                    #expect(try Self.incoming(stores, newest).count == 1)
                }
                return content
            }
        }
        try stop.wait()
        try Side { try moment.act(on: database, in: stores) }.outcome()
        // Its file is gone at once, though nobody writes to it.
        if place == .halfWritten {
            if moment == .keyChange { #expect(try eventually { try stores.generations().count == 1 }) }
            if moment == .close || moment == .keyChange { #expect(try Self.incoming(stores) == []) }
        }
        stop.release()
        let error = thrown { try loading.outcome() }
        switch (place, moment) {
        case (.halfWritten, .close), (.halfWritten, .deletion), (.halfWritten, .replacement),
            (.halfWritten, .keyChange):
            #expect(error?.code == .cancelled)
            try moment.expectSound(stores, closing: moment == .keyChange ? database : nil, holds: [:])
        case (.created, .close), (.created, .deletion), (.created, .replacement):
            #expect(error?.code == .closed)
            try moment.expectSound(stores, holds: [:])
        default:
            #expect(error == nil)
            try moment.expectSound(stores, closing: database, holds: ["a": Self.bytes])
        }
    }

    /// Nobody would have given it up any more: a download went on into a store that was closed.
    @Test("Content that may take long and is begun while the store closes is not begun")
    func begunTooLate() throws {
        let stop = Hold(isArmed: false)
        let stores = Self.held(stop)
        let database = try stores.open()
        stop.arm()
        let beginning = Side { _ = try database.beginLongContent() }
        try stop.wait()
        try database.close()
        stop.release()
        #expect(thrown { try beginning.outcome() }?.code == .closed)
        #expect(try Self.incoming(stores) == [])
    }

    /// What is in the `incoming/` of a generation, or of the only one.
    private static func incoming(_ stores: TestStores, _ generation: String? = nil) throws -> [String] {
        let directory = if let generation { stores.url().appending(path: generation) } else { try stores.generation() }
        return try FileManager.default.contentsOfDirectory(atPath: directory.appending(path: "incoming").path)
    }

    @Test("A staging that finds the generation retired tries again in the next")
    func retired() throws {
        let stores = TestStores()
        let database = try stores.open()
        var attempts: [ObjectIdentifier] = []
        let content = try database.storage.inCurrentGeneration { (attachments) throws(CofferError) in
            attempts.append(ObjectIdentifier(attachments))
            if attempts.count == 1 { try Side { try Moment.keyChange.act(on: database, in: stores) }.outcomeOrStop() }
            return try attachments.beginStaging()
        }
        #expect(attempts.count == 2 && attempts[1] == ObjectIdentifier(database.storage.attachments))
        content.cancel()
        try Moment.keyChange.expectSound(stores, closing: database, holds: [:])
    }

    @Test(
        "A key change waits for nobody who stages, and what was staged in the middle of it comes into the new generation"
    )
    func beforeTheExchange() throws {
        let stop = Hold(isArmed: false)
        let stores = TestStores(
            fileSystem: RecordingFileSystem(afterStep: { _, name in if name == "rename MANIFEST.new" { stop.pause() } })
        )
        let database = try stores.open()
        stop.arm()
        let change = Side { try Moment.keyChange.act(on: database, in: stores) }
        try stop.wait()
        // On the disk the new generation is the store's, and here the old one still.
        let content = try database.beginContent()
        try content.write(Array(Self.bytes))
        let blob = try content.finish()
        let long = try database.beginLongContent()
        let saving = Side {
            let draft = try database.document(withID: "a").newRevision()
            draft.setAttachment(named: "a", contentType: nil, blob)
            try draft.save()
        }
        let closing = Side { try database.close() }
        #expect(saving.isKept && closing.isKept)
        stop.release()
        try change.outcome()
        #expect(thrown { try long.write([1]) }?.code == .cancelled)
        let error = thrown { try saving.outcome() }
        try closing.outcome()
        // Whichever of the two was first.
        #expect(error == nil || error?.code == .closed)
        try Moment.keyChange.expectSound(stores, holds: error == nil ? ["a": Self.bytes] : [:])
    }
}

extension Side {
    /// As ``outcome()``, for where only Coffer's errors may be thrown.
    fileprivate func outcomeOrStop() throws(CofferError) {
        do {
            _ = try outcome()
        } catch {
            throw error as? CofferError ?? CofferError(.ioFailed, "another error", cause: error)
        }
    }
}
