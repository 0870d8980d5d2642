import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import CofferSQLite

/// A vector of Vectors/sealed-pages/files: what a sealed file and its log, changed, hold together.
struct SealedFileVector {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appending(path: "../../Vectors/sealed-pages").standardizedFileURL

    static let names: [String] = {
        let files = try? FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "files").path)
        return (files ?? []).filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
    }()

    struct Change: Decodable {
        let `do`: String, file: String, offset: Int?, length: Int?, hex: String?
    }

    struct Description: Decodable {
        let base: String, changes: [Change], outcome: String, state: String?
    }

    struct States: Decodable {
        let key: String, storeUUID: String, generation: UInt64, generationTag: String
        let states: [String: [String: String]]
    }

    let description: Description
    let states: States
    var file: Data
    var log: Data

    init(_ name: String) throws {
        func read(_ path: String) throws -> Data { try Data(contentsOf: Self.folder.appending(path: path)) }
        description = try JSONDecoder().decode(Description.self, from: read("files/\(name).json"))
        states = try JSONDecoder().decode(States.self, from: read("states.json"))
        file = try read("bases/\(description.base).db")
        log = (try? read("bases/\(description.base).log")) ?? Data()
        for change in description.changes {
            if change.file == "db" { try Self.apply(change, to: &file) } else { try Self.apply(change, to: &log) }
        }
    }

    private static func apply(_ change: Change, to data: inout Data) throws {
        if let length = change.length { data = data.prefix(length) }
        guard let offset = change.offset, let hex = change.hex else { return }
        let bytes = try #require([UInt8](hex: hex))
        if data.count < offset + bytes.count { data.append(Data(count: offset + bytes.count - data.count)) }
        data.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    }

    /// The rows that the vector says are there; nil where it says that file and log are damaged.
    var rows: [Int64: String]? {
        guard let state = description.state, let rows = states.states[state] else { return nil }
        return Dictionary(
            uniqueKeysWithValues: rows.map { number, text in
                let parts = text.split(separator: "*")
                let repeated =
                    parts.count == 2 ? Int(parts[1]).map { String(repeating: String(parts[0]), count: $0) } : nil
                return (Int64(number) ?? 0, repeated ?? text)
            })
    }

    func pages(at path: String) throws -> SealedPages {
        try SealedPages(
            path: path, subject: "test", key: SymmetricKey(data: #require([UInt8](hex: states.key))),
            binding: SealedPageBinding(
                storeUUID: #require([UInt8](hex: states.storeUUID)), generation: states.generation,
                generationTag: #require(UInt64(states.generationTag, radix: 16))),
            cacheByteCount: 1 << 20)
    }
}

@Suite("Sealed files are those of Vectors/sealed-pages")
struct SealedFileVectorTests {
    let folder = TemporaryFolder()

    /// All that the database holds, as long as SQLite finds nothing wrong with it.
    private func rows(_ vector: SealedFileVector, _ access: Connection.Access) throws -> [Int64: String] {
        let path = folder.file("db.sqlite3")
        try vector.file.write(to: URL(filePath: path))
        try? FileManager.default.removeItem(atPath: path + "-wal")
        if !vector.log.isEmpty { try vector.log.write(to: URL(filePath: path + "-wal")) }
        let connection = try Connection(
            path: path, subject: "test", access: access, protection: .sealed(vector.pages(at: path)),
            cacheByteCount: 1 << 20)
        defer { try? connection.close() }
        let rows = try Statement(connection, "SELECT number, text FROM notes").all { ($0.integer(0), $0.text(1)) }
        let check = try Statement(connection, "PRAGMA integrity_check").first { $0.text(0) }
        if check != "ok" { throw CofferError(.damaged, "integrity") }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    @Test("A sealed file and its log hold what their vector says, or are damaged", arguments: SealedFileVector.names)
    func holds(name: String) throws {
        let vector = try SealedFileVector(name)
        for access in [Connection.Access.readWrite, .readOnly] {
            let result = Result { try rows(vector, access) }
            switch result {
            case .success(let rows): #expect(rows == vector.rows, "\(access)")
            case .failure(let error):
                // To SQLite a file without a byte is an empty database. A store is refused before that.
                let isEmpty = vector.file.isEmpty && vector.log.isEmpty
                #expect(
                    vector.rows == nil && (isEmpty || (error as? CofferError)?.code == .damaged), "\(access): \(error)")
            }
        }
    }

    /// A fuzzer found it: the checkpoint sealed pages of zeros until the disk was full.
    @Test("A commit that says more pages than SQLite can have made does not lengthen the file")
    func hugeCommit() throws {
        let vector = try SealedFileVector("logged-frame-10-says-20000-pages")
        let path = folder.file("db.sqlite3")
        try vector.file.write(to: URL(filePath: path))
        try vector.log.write(to: URL(filePath: path + "-wal"))
        let connection = try Connection(
            path: path, subject: "test", access: .readWrite, protection: .sealed(vector.pages(at: path)),
            cacheByteCount: 1 << 20)
        let error = #expect(throws: CofferError.self) { try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)") }
        #expect(error?.code == .damaged)
        try? connection.close()
        #expect(try Data(contentsOf: URL(filePath: path)).count <= vector.file.count + 4096)
    }

    @Test("Vectors/sealed-pages has all its files and logs")
    func count() { #expect(SealedFileVector.names.count == 153) }
}
