internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A file that says where the keys of stores are, and holds none: on each line a pattern, white space, and a source.
///
///     # The first line that matches counts.
///     /srv/stores/*.coffer    credential:coffer
///     people.coffer           hex+file:/etc/coffer/people-key
///
/// A pattern with a slash is for the store's path, any other for its name; `*` and `?` are as in a shell.
struct KeyProfile {
    /// It names the file; if it is empty, there is no profile. By default that is `coffer/profile` in `$XDG_CONFIG_HOME` or `~/.config`.
    static let variable = "COFFER_PROFILE"

    private let lines: [(pattern: String, source: KeySource)]

    /// Where the user's profile says that the key of that store is; nil if there is no profile, or no line for it.
    static func source(of store: StorePath) throws(Failure) -> KeySource? {
        if let named = environment(variable) {
            return named.isEmpty ? nil : try KeyProfile(contentsOf: named).source(of: store)
        }
        let folder = environment("XDG_CONFIG_HOME") ?? environment("HOME").map { $0 + "/.config" }
        guard let folder, !folder.isEmpty else { return nil }
        let path = folder + "/coffer/profile"
        guard unsafe access(path, F_OK) == 0 else { return nil }
        return try KeyProfile(contentsOf: path).source(of: store)
    }

    private static func environment(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    /// - Throws: if others could have written it, since it names commands to run, or if a line is invalid.
    private init(contentsOf path: String) throws(Failure) {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure.keyUnavailable(Failure.system(errno, path).message) }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            throw Failure.keyUnavailable(Failure.system(errno, path).message)
        }
        guard status.st_uid == geteuid() || status.st_uid == 0, status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
            throw Failure.keyUnavailable(
                "\(path): others than you can write it, and it names commands that are run",
                hint: "chmod go-w FILE keeps them out")
        }
        let contents = try InputFile.contents(of: descriptor, named: path)
        guard let text = String(validating: contents, as: UTF8.self) else {
            throw Failure.keyUnavailable("\(path): it is not text in UTF-8")
        }
        var lines: [(String, KeySource)] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let words = line.split(maxSplits: 1, whereSeparator: \.isWhitespace)
            guard let pattern = words.first, !pattern.hasPrefix("#") else { continue }
            let source = words.count == 2 ? words[1].trimmingCharacters(in: .whitespaces) : ""
            guard let source = try? KeySource(source) else {
                throw Failure.keyUnavailable(
                    "\(path):\(index + 1): it has no pattern and source of a key, such as *.coffer credential:coffer")
            }
            lines.append((String(pattern), source))
        }
        self.lines = lines
    }

    private func source(of store: StorePath) -> KeySource? {
        lines.first { pattern, _ in
            unsafe fnmatch(pattern, pattern.contains("/") ? store.path : store.fileName, 0) == 0
        }?.source
    }
}
