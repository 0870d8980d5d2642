import Foundation

/// The files of this repository, as the checks of this target read them.
enum Repository {
    /// The folder that holds `Package.swift`.
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// Every file under `folder` whose name ends in one of `extensions`, hidden files and build products left out.
    static func files(in folder: String = "", withExtensions extensions: Set<String>) throws -> [SourceFile] {
        var found: [SourceFile] = []
        var folders = [folder]
        while let next = folders.popLast() {
            for entry in try FileManager.default.contentsOfDirectory(
                at: root.appending(path: next), includingPropertiesForKeys: [.isDirectoryKey],
                options: [.skipsHiddenFiles])
            {
                let path = next.isEmpty ? entry.lastPathComponent : next + "/" + entry.lastPathComponent
                if try entry.resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true {
                    folders.append(path)
                } else if extensions.contains(entry.pathExtension) {
                    found.append(SourceFile(path: path, text: try String(contentsOf: entry, encoding: .utf8)))
                }
            }
        }
        return found.sorted { $0.path < $1.path }
    }

    /// Whether there is a file or folder at `path`.
    static func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: root.appending(path: path).path(percentEncoded: false))
    }
}

/// A file of the repository: its path from the root, and what it says.
struct SourceFile {
    let path: String
    let text: String

    /// The folder that the file is in, from the root.
    var folder: String { path.split(separator: "/").dropLast().joined(separator: "/") }

    /// The target that the file belongs to: the folder after `Sources`, or nothing.
    var target: String {
        path.split(separator: "/").drop { $0 != "Sources" }.dropFirst().dropLast().first.map(String.init) ?? ""
    }

    /// The lines with their numbers, from 1.
    var numberedLines: [(number: Int, text: Substring)] {
        text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().map { ($0 + 1, $1) }
    }
}

/// What a check found: where, and what is wrong there.
struct Finding: CustomStringConvertible {
    let place: String
    let complaint: String

    init(_ file: SourceFile, line: Int? = nil, _ complaint: String) {
        place = line.map { "\(file.path):\($0)" } ?? file.path
        self.complaint = complaint
    }

    var description: String { "\(place): \(complaint)" }
}
