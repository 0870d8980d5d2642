import Coffer
import Dispatch
import Foundation
import GRDB

/// Keeps people in an encrypted Coffer database and their visits in a GRDB one, by turns and then at the same time,
/// and checks that each came back whole and that only GRDB's can be read on the disk.
public func keepTwoDatabases() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "TwoDatabases-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }

    let visits = try Visits(at: folder.appending(path: "visits.sqlite"))
    let key = SymmetricKey(password: "password123456")
    let manager = try Manager(directory: folder)

    var options = DatabaseOptions()
    options.create = true
    options.encryptionKey = key
    let people = try manager.openDatabase(named: "people", options: options)

    // The README's sample.
    let draft = try people.document(withID: "Robin").newRevision()
    draft["name"] = "Robin Marker"
    draft["age"] = 31
    try draft.save()
    try visits.add("Robin")
    try check(people["Robin"]?["name"] == "Robin Marker", "the document reads back")

    // By turns: each library's statement comes right after the other's.
    for number in 1...20 {
        try people.save(json: Data(#"{"name": "Marker \#(number)"}"#.utf8), withID: "person-\(number)")
        try visits.add("person-\(number)")
        try check(people["person-\(number)"] != nil, "person \(number) is there")
    }

    // At the same time, from several threads.
    let failures = Failures()
    DispatchQueue.concurrentPerform(iterations: 4) { worker in
        failures.collect {
            for number in 0..<10 {
                let id = "worker-\(worker)-\(number)"
                try people.save(json: Data(#"{"name": "Marker"}"#.utf8), withID: id)
                try visits.add(id)
            }
        }
    }
    try failures.throwFirst()
    try check(people.documentCount == 61, "Coffer holds what was saved")
    try check(visits.count() == 61, "GRDB holds what was saved")
    try check(visits.cipherVersion() == nil, "GRDB runs on SQLite, not on SQLCipher")
    try people.close()

    // Another key opens nothing, and has no effect on GRDB.
    do {
        options.encryptionKey = SymmetricKey(password: "password123457")
        _ = try manager.openDatabase(named: "people", options: options)
        throw CheckFailed(description: "a wrong key opened the database")
    } catch let error as CofferError {
        try check(error.status == 401, "a wrong key is a 401")
    }
    try check(visits.count() == 61, "GRDB still reads")

    let reopened = try manager.existingDatabase(named: "people", encryptionKey: key)
    try check(reopened?["Robin"]?["age"] == 31, "the right key opens it again")
    try reopened?.close()

    let marker = Data("Marker".utf8), header = Data("SQLite format 3\0".utf8)
    let encrypted = try contents(of: folder.appending(path: "people.coffer"))
    try check(!encrypted.isEmpty, "the store has files")
    try check(encrypted.allSatisfy { $0.range(of: marker) == nil }, "no content of Coffer's is readable")
    try check(encrypted.allSatisfy { $0.range(of: header) == nil }, "no file of Coffer's is a plain database")
    let plain = try Data(contentsOf: folder.appending(path: "visits.sqlite"))
    try check(plain.starts(with: header), "GRDB's is one")
    print("Coffer and GRDB: 61 documents and 61 rows, each in its own library.")
}

/// A GRDB database with one table.
private struct Visits {
    let queue: DatabaseQueue

    init(at file: URL) throws {
        queue = try DatabaseQueue(path: file.path(percentEncoded: false))
        try queue.write { try $0.execute(sql: "CREATE TABLE visit (id INTEGER PRIMARY KEY, person TEXT NOT NULL)") }
    }

    func add(_ person: String) throws {
        try queue.write { try $0.execute(sql: "INSERT INTO visit (person) VALUES (?)", arguments: [person]) }
    }

    func count() throws -> Int? {
        try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM visit") }
    }

    func cipherVersion() throws -> String? {
        try queue.read { try String.fetchOne($0, sql: "PRAGMA cipher_version") }
    }
}

private struct CheckFailed: Error, CustomStringConvertible {
    let description: String
}

private func check(_ holds: @autoclosure () throws -> Bool, _ what: String) throws {
    if try !holds() { throw CheckFailed(description: "this does not hold: \(what)") }
}

/// What went wrong on several threads.
private final class Failures: @unchecked Sendable {
    private let lock = NSLock()
    private var errors: [any Error] = []

    func collect(_ work: () throws -> Void) {
        do {
            try work()
        } catch {
            lock.withLock { errors.append(error) }
        }
    }

    func throwFirst() throws {
        if let first = errors.first { throw first }
    }
}

/// The bytes of every file below `folder`.
private func contents(of folder: URL) throws -> [Data] {
    try FileManager.default.subpathsOfDirectory(atPath: folder.path(percentEncoded: false)).compactMap { path in
        let file = folder.appending(path: path)
        let isDirectory = try file.resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true
        return isDirectory ? nil : try Data(contentsOf: file)
    }
}
