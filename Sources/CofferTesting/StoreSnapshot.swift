internal import CofferSealing
public import Foundation

/// Every file and directory of a store at one moment: name, kind, permissions, owner and the SHA-256 of the content.
///
/// Times are left out: they are not content, and reading changes some. Links are noted and not followed.
public struct StoreSnapshot: Equatable, Sendable {
    fileprivate let entries: [String: Entry]

    fileprivate struct Entry: Equatable {
        var kind: String
        var permissions: Int
        var owner: Int
        var byteCount: Int
        var digest: [UInt8]
    }

    /// Looks at everything in `directory`, and at the directory itself.
    ///
    /// Nobody may write meanwhile. Throws what Foundation throws when something can't be read.
    public init(of directory: URL) throws {
        let root = directory.path(percentEncoded: false)
        var entries = ["": try Entry(root)]
        for name in try FileManager.default.subpathsOfDirectory(atPath: root) {
            entries[name] = try Entry(directory.appending(path: name).path(percentEncoded: false))
        }
        self.entries = entries
    }

    /// How many files and directories there are, the directory itself included.
    public var count: Int { entries.count }

    /// The differences of `later`, one line per file.
    public func changes(in later: StoreSnapshot) -> [String] {
        Set(entries.keys).union(later.entries.keys).sorted().compactMap { name in
            let shown = name.isEmpty ? "the directory itself" : name
            switch (entries[name], later.entries[name]) {
            case (nil, _): return "\(shown) is new"
            case (_, nil): return "\(shown) is gone"
            case (let before?, let after?):
                if before == after { return nil }
                if before.kind != after.kind { return "\(shown) has another type" }
                if before.byteCount != after.byteCount {
                    return "\(shown) has \(after.byteCount) bytes and had \(before.byteCount)"
                }
                return before.digest == after.digest
                    ? "\(shown) has other permissions or another owner" : "\(shown) has other bytes"
            }
        }
    }
}

extension StoreSnapshot.Entry {
    fileprivate init(_ path: String) throws {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        let type = attributes[.type] as? FileAttributeType ?? .typeUnknown
        let content: Data =
            switch type {
            case .typeRegular: try Data(contentsOf: URL(filePath: path), options: .alwaysMapped)
            case .typeSymbolicLink: Data(try FileManager.default.destinationOfSymbolicLink(atPath: path).utf8)
            default: Data()
            }
        self.init(
            kind: type.rawValue, permissions: (attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0,
            owner: (attributes[.ownerAccountID] as? NSNumber)?.intValue ?? 0, byteCount: content.count,
            digest: try unsafe content.withUnsafeBytes { try unsafe Digest.sha256(of: $0.bytes) })
    }
}
