import Foundation
import TestSupport

/// Where test vectors are, and how they are read.
enum VectorFiles {
    static let repository = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Published vectors, which aren't part of this repository: beside it, or where COFFER_SHARED_VECTORS says.
    static let shared: URL? = {
        let named = ProcessInfo.processInfo.environment["COFFER_SHARED_VECTORS"].map { URL(filePath: $0) }
        let folder = named ?? repository.deletingLastPathComponent().appending(path: "shared/vectors")
        return FileManager.default.fileExists(atPath: folder.path) ? folder : nil
    }()

    static let sharedMissing = "no published vectors: neither beside the repository nor in COFFER_SHARED_VECTORS"

    /// The vectors of `Vectors/keys/<name>.json`.
    static func keys<Vector: Decodable>(_ name: String, as type: Vector.Type = Vector.self) throws -> [Vector] {
        try own("keys/\(name)")
    }

    /// The vectors of `Vectors/attachments/<name>.json`.
    static func attachments<Vector: Decodable>(_ name: String, as type: Vector.Type = Vector.self) throws -> [Vector] {
        try own("attachments/\(name)")
    }

    /// The vectors of `Vectors/sealed-pages/<name>.json`.
    static func sealedPages<Vector: Decodable>(_ name: String, as type: Vector.Type = Vector.self) throws -> [Vector] {
        try own("sealed-pages/\(name)")
    }

    private static func own<Vector: Decodable>(_ path: String) throws -> [Vector] {
        let data = try Data(contentsOf: repository.appending(path: "Vectors/\(path).json"))
        return try JSONDecoder().decode(OwnFile<Vector>.self, from: data).vectors
    }

    static func shared<File: Decodable>(_ name: String, as type: File.Type) throws -> File {
        guard let shared else { throw CocoaError(.fileNoSuchFile) }
        return try JSONDecoder().decode(type, from: Data(contentsOf: shared.appending(path: name)))
    }

    private struct OwnFile<Vector: Decodable>: Decodable { let vectors: [Vector] }
}

/// Bytes that a JSON file spells in hex.
struct Hex: Decodable, Equatable, CustomStringConvertible {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let bytes = [UInt8](hex: text) else {
            throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "not hex"))
        }
        self.bytes = bytes
    }

    var description: String { bytes.hex }
}
