import Coffer
import Foundation
import Testing

/// A folder with stores under one key, another key, and a file of receipts.
struct ReceiptWorkspace {
    let work: Workspace
    let names: [String]
    static let keys = try? [SymmetricKey(data: Data(0..<32)), SymmetricKey(data: Data(32..<64))]

    init(storeCount: Int) throws {
        work = try Workspace(inMemory: true)
        names = (0..<storeCount).map { "s\($0)" }
        try work.write(Data(0..<32), to: "old")
        try work.write(Data(32..<64), to: "new")
        try work.write(Data(64..<96), to: "third")
        for name in names { try make(name) }
    }

    var folder: URL { work.folder.appending(path: "stores", directoryHint: .isDirectory) }
    private var file: URL { work.folder.appending(path: "receipts") }

    /// Makes a store with one document that tells its name.
    private func make(_ name: String) throws {
        var options = DatabaseOptions()
        options.create = true
        options.encryptionKey = Self.keys?[0]
        let database = try Manager(directory: folder).openDatabase(named: name, options: options)
        try database.save(json: Data(#"{"name":"\#(name)"}"#.utf8), withID: "a")
        try database.close()
    }

    func rotate(
        _ arguments: String..., from old: String = "old", to new: String = "new",
        meanwhile: (pid_t) throws -> Void = { _ in }
    ) throws -> CofferProcess.Outcome {
        try CofferProcess.run(
            ["rotate", "stores", "--key", "raw+file:\(old)", "--new-key", "raw+file:\(new)", "--receipts", "receipts"]
                + arguments, in: work.folder, meanwhile: meanwhile)
    }

    func verify(_ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(["receipts", "verify", "receipts", "--json"] + arguments, in: work.folder)
    }

    /// The lines of the file, without their ends.
    var lines: [String] {
        get throws { try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init) }
    }

    /// Puts other lines into the file.
    func replace(_ lines: [String], end: String = "\n") throws {
        try Data((lines.joined(separator: "\n") + end).utf8).write(to: file)
    }

    /// What the lines say, each as its schema has it; nothing of one that was not written to its end.
    var records: [[String: Any]] {
        get throws {
            try lines.map { line in
                let object = (try? JSONSerialization.jsonObject(with: Data(line.utf8))) as? [String: Any]
                guard let object else { return [:] }
                let schema = try #require(try JSONSchema(type: object["type"] as? String ?? ""), "\(line)")
                #expect(try schema.problems(object) == [], "\(line)")
                return object
            }
        }
    }

    /// The generation of each store, by the names.
    func generation(of name: String) throws -> Int { try Manager(directory: folder).storeInfo(named: name).generation }

    /// Whether a key opens the store, which holds what it held at first.
    func opens(_ name: String, _ key: Int) throws -> Bool {
        var options = DatabaseOptions()
        options.create = false
        options.encryptionKey = Self.keys?[key]
        do throws(CofferError) {
            let database = try Manager(directory: folder).openDatabase(named: name, options: options)
            #expect(try database["a"]?.currentRevision?["name"] == name)
            try database.close()
            return true
        } catch {
            guard error.status == 401 else { throw error }
            return false
        }
    }

    /// How often it was said of a store that it got another key: in that run, or when a later one found out.
    func rotationCount(of name: String) throws -> Int { try rotationCounts[name] ?? 0 }

    /// The same of all stores, by their names.
    var rotationCounts: [String: Int] {
        get throws {
            try records.reduce(into: [:]) { counts, record in
                guard record["outcome"] as? String == "rotated" || record["completes"] != nil,
                    let file = (record["path"] as? String)?.split(separator: "/").last, file.hasSuffix(".coffer")
                else { return }
                counts[String(file.dropLast(".coffer".count)), default: 0] += 1
            }
        }
    }
}
