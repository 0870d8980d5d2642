import Coffer
import CofferCouchbaseLite
import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Imports onto a disk that fails or is full.
@Suite("Importing from Couchbase Lite onto a disk that fails") struct ImportFaultTests {
    private func source() throws -> SourceStore {
        let source = try SourceStore()
        let content = Data(repeating: 3, count: 100_000)
        try source.write(content)
        let digest = try SourceStore.digest(content)
        try source.add(
            documents: [1: "a", 2: "b"],
            [
                .init(
                    sequence: 1, document: 1, id: "1-" + String(repeating: "a", count: 32),
                    json: #"{"_attachments":{"f":{"stub":true,"digest":"\#(digest)","length":100000}}}"#),
                .init(sequence: 2, document: 2, id: "1-" + String(repeating: "b", count: 32), json: "{}"),
            ])
        return source
    }

    /// Imports onto a disk with a fault. Returns how many steps the disk made, and the error.
    private func take(_ source: SourceStore, _ fault: Fault?) throws -> (stepCount: Int, error: CofferError?) {
        let directory = FileManager.default.temporaryDirectory.appending(path: "faults-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let disk = RecordingFileSystem(fault)
        let manager = Manager(directory: directory, fileSystem: disk, passwordCost: .standard)
        var failure: CofferError?
        do throws(CofferError) {
            try manager.importCouchbaseLite(
                at: source.url, named: "people", encryptionKey: try SymmetricKey(data: Self.key))
        } catch {
            failure = error
        }
        let path = directory.path(percentEncoded: false)
        let names = try FileManager.default.contentsOfDirectory(atPath: path).filter { !$0.hasPrefix(".") }
        // Whatever the error is, there is a whole store or none.
        #expect(names == (failure == nil ? ["people.coffer"] : []), "\(String(describing: fault))")
        if !names.isEmpty {
            let healthy = try Manager(directory: directory)
            #expect(try healthy.verifyDatabase(named: "people", encryptionKey: SymmetricKey(data: Self.key)).isSound)
        }
        return (disk.stepCount, failure)
    }

    private static let key = [UInt8](repeating: 9, count: 32)

    @Test("An import makes a whole store or none, at whichever step the disk is full or fails", .timeLimit(.minutes(5)))
    func eachStep() throws {
        let source = try source()
        let before = try source.snapshot()
        let rehearsal = try take(source, nil)
        #expect(rehearsal.error == nil && rehearsal.stepCount > 10)
        for step in 1...rehearsal.stepCount {
            let full = try take(source, .fullFrom(step))
            #expect([nil, .noSpace].contains(full.error?.code), "\(step)")
            let failed = try take(source, .fail(step, EIO))
            #expect([nil, .ioFailed].contains(failed.error?.code), "\(step)")
        }
        #expect(try source.snapshot() == before)
    }
}
