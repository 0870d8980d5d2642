import Foundation

/// The order of the folders of a target: a file names only types of its own folder and of those before it.
///
/// The compiler sees one module. What this finds are the names of types that are declared at the top of a file; members and
/// extensions are not followed.
struct FolderOrder {
    /// The target's folder.
    let target: String

    /// Its folders, the lowest first.
    let folders: [String]

    /// Where a file names a type of a folder above its own, and the folders that have no place in the order.
    func findings(in files: [SourceFile]) -> [Finding] {
        let own = files.filter { $0.path.hasPrefix(target + "/") }
        let homes = homes(in: own)
        return own.flatMap { file -> [Finding] in
            guard let place = folders.firstIndex(of: folder(of: file)) else {
                return [Finding(file, "its folder has no place in the order of folders")]
            }
            return code(of: file).flatMap { line, text in
                names(in: text).compactMap { name in
                    guard let home = homes[name], let other = folders.firstIndex(of: home), other > place else {
                        return nil
                    }
                    return Finding(file, line: line, "\(name) is declared in \(home), which is above this folder")
                }
            }
        }
    }

    private func folder(of file: SourceFile) -> String {
        let rest = file.path.dropFirst(target.count + 1).split(separator: "/")
        return rest.count > 1 ? String(rest[0]) : ""
    }

    /// The folder of each type.
    private func homes(in files: [SourceFile]) -> [String: String] {
        let declaration =
            /^(?:@\w+(?:\([^)]*\))? +)*(?:(?:public|package|internal|final|indirect) +)*(?:class|struct|enum|protocol|actor|typealias) +(\w+)/
        var homes: [String: String] = [:]
        for file in files {
            for (_, text) in code(of: file) {
                guard let found = text.prefixMatch(of: declaration) else { continue }
                homes[String(found.1)] = folder(of: file)
            }
        }
        return homes
    }

    /// The lines without comments and texts.
    private func code(of file: SourceFile) -> [(line: Int, text: Substring)] {
        var isInText = false
        return file.numberedLines.compactMap { number, line in
            if line.contains("\"\"\"") { isInText.toggle() }
            guard !isInText else { return nil }
            let withoutTexts = String(line).replacing(/"(\\.|[^"\\])*"/, with: "\"\"")
            let end = withoutTexts.range(of: "//")?.lowerBound ?? withoutTexts.endIndex
            return (number, withoutTexts[..<end])
        }
        .filter { !$0.text.trimmingCharacters(in: .whitespaces).isEmpty }
    }

    private func names(in text: Substring) -> Set<String> {
        Set(text.matches(of: /\b[A-Z]\w+\b/).map { String($0.output) })
    }
}

/// A type that is extended in its own folder alone: what other folders know of it are rules of theirs, which take it.
struct OwnFolder {
    let type: String
    let folder: String

    /// Where files of other folders extend the type.
    func findings(in files: [SourceFile]) -> [Finding] {
        files.filter { !$0.path.hasPrefix(folder + "/") }.flatMap { file in
            file.numberedLines.compactMap { number, line in
                guard let found = line.prefixMatch(of: Self.extensions), found.1 == type else { return nil }
                return Finding(file, line: number, "\(type) is extended outside of \(folder)")
            }
        }
    }

    private static var extensions: Regex<(Substring, Substring)> {
        /(?:@\w+ +)*(?:(?:public|package|internal|fileprivate|private) +)*extension +(?:Coffer\w*\.)?(\w+)/
    }

    /// Those that lend what a transaction has: a rule of revisions is a value that takes the writer, not a part of it.
    static let ofCoffer = ["Writer", "WriterState", "TransactionFiles"].map {
        OwnFolder(type: $0, folder: "Sources/Coffer/Open")
    }
}

extension FolderOrder {
    /// Who opens a store; what a revision's contents are, and revisions themselves; what is kept of documents beside them; what
    /// tells of them, lists, finds and sums them up; work on a store as a whole; and the names that users see besides.
    static let ofCoffer = FolderOrder(
        target: "Sources/Coffer",
        folders: [
            "Logging", "Open", "Contents", "Revisions", "Attachments", "Expiration", "Notifications", "Listing",
            "Indexes",
            "Views", "Queries", "Keys", "KeyChange", "Verification", "Backup", "Salvage", "Compaction", "Face", "Async",
            "CouchbaseLite",
        ])
}
