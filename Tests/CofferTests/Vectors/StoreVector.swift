import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferModel

/// A store of Vectors/stores or Vectors/sealed-pages/stores: what has to be read of it, or how it has to be refused.
struct StoreVector {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appending(path: "../../../Vectors/stores").standardizedFileURL
    static let sealed = folder.appending(path: "../sealed-pages/stores").standardizedFileURL

    static func names(in folder: String, of set: URL = folder) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: set.appending(path: folder).path)) ?? []
        return names.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
    }

    static func json(_ data: Data) throws -> JSONObject {
        try JSONObject(DocumentBody(json: Array(data)).body)
    }

    let json: JSONObject
    private let set: URL

    init(valid name: String, of set: URL = folder) throws { try self.init("valid/\(name).json", set) }
    init(invalid name: String, of set: URL = folder) throws { try self.init("invalid/\(name).json", set) }

    private init(_ path: String, _ set: URL) throws {
        json = try Self.json(Data(contentsOf: set.appending(path: path)))
        self.set = set
    }

    func text(_ key: String) throws -> String { try #require(json[key]?.stringValue) }

    /// The keys that open the store; nil alone for one that is not encrypted.
    func keys() throws -> [SymmetricKey?] {
        let keys = try #require(json["keys"]?.arrayValue).map { try Self.key($0) }
        return keys.isEmpty ? [nil] : keys
    }

    static func key(_ json: JSONValue) throws -> SymmetricKey? {
        guard let key = json.objectValue else { return nil }
        if let password = key["password"]?.stringValue { return SymmetricKey(password: password) }
        return try SymmetricKey(data: try bytes(key["bytes"]))
    }

    // MARK: Files

    /// Takes the store of a valid vector out of its archive.
    static func unpack(_ name: String, of set: URL = folder, into directory: URL) throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try tar(
            "--extract", "--preserve-permissions", "--file", set.appending(path: "valid/\(name).tar").path,
            "--directory", directory.path)
    }

    static func pack(_ store: String, in directory: URL, as file: URL) throws {
        try tar(
            "--create", "--format=ustar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner",
            "--file", file.path, "--directory", directory.path, store)
    }

    private static func tar(_ arguments: String...) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["tar"] + arguments
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CofferError(.ioFailed, "tar") }
    }

    /// Makes the store of an invalid vector: that of a valid one, and what the vector changes in it.
    func make(in directory: URL) throws {
        try Self.unpack(text("base"), of: set, into: directory)
        let store = directory.appending(path: try text("store"))
        for change in try #require(json["changes"]?.arrayValue) {
            try Self.apply(try #require(change.objectValue), to: store)
        }
    }

    private static func bytes(_ hex: JSONValue?) throws -> [UInt8] {
        let digits = try #require(hex?.stringValue)
        return try #require([UInt8](hex: digits))
    }

    /// One of the changes that Vectors/stores/README.md lists.
    private static func apply(_ change: JSONObject, to store: URL) throws {
        func path(_ key: String) throws -> URL {
            store.appending(path: try #require(change[key]?.stringValue)).standardizedFileURL
        }
        let manager = FileManager.default
        switch try #require(change["do"]?.stringValue) {
        case "patch":
            let bytes = try bytes(change["hex"])
            let offset = try #require(change["offset"]?.integer)
            try path("file").patch { data in
                if data.count < offset + bytes.count { data.append(Data(count: offset + bytes.count - data.count)) }
                data.replaceSubrange(offset..<offset + bytes.count, with: bytes)
            }
        case "cut":
            let count = try #require(change["length"]?.integer)
            try path("file").patch { $0 = $0.prefix(count) }
        case "write": try Data(bytes(change["hex"])).write(to: path("file"))
        case "remove": try manager.removeItem(at: path("file"))
        case "rename":
            try? manager.removeItem(at: path("to"))
            try manager.moveItem(at: path("file"), to: path("to"))
        case "link":
            try manager.createSymbolicLink(
                atPath: path("file").path, withDestinationPath: change["to"]?.stringValue ?? "")
        case "exchange":
            let other = store.appending(path: "exchanged")
            try manager.moveItem(at: path("file"), to: other)
            try manager.moveItem(at: path("to"), to: path("file"))
            try manager.moveItem(at: other, to: path("to"))
        case let other: Issue.record("no such change: \(other)")
        }
    }
}

extension JSONValue {
    var integer: Int? { numberValue?.int64.map { Int($0) } }
}
