internal import ArgumentParser
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A file of numbers about the last run of a command, which whoever watches this machine reads. Each run replaces it as a whole.
struct MetricsFile {
    private let path: String

    /// What each of them begins with.
    private static let beginning = Array("# HELP coffer_".utf8)

    /// - Throws: where it can't be written, before anything is done, or is something else, which would be lost.
    init(_ path: String) throws(Failure) {
        self.path = path
        try check()
    }

    private func check() throws(Failure) {
        let folder = Folder.parent(of: path)
        guard unsafe access(folder, W_OK | X_OK) == 0 else { throw Failure.system(errno, folder) }
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else {
            guard errno == ENOENT, !path.hasSuffix("/") else { throw Failure.system(errno, path) }
            return
        }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size == 0 || isOfARun() else {
            throw Failure.usage(
                "\(path): it is not the metrics of an earlier run, and is left alone", hint: "name another file")
        }
    }

    private func isOfARun() -> Bool {
        let descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: Self.beginning.count)
        return unsafe read(descriptor, &bytes, bytes.count) == bytes.count && bytes == Self.beginning
    }

    /// Does `body`, and writes what it has counted and how it ended, whether or not it throws.
    ///
    /// - Parameters:
    ///   - prefix: what the names begin with, such as `coffer_rotation`.
    ///   - subject: what a person calls it, such as `the rotation`.
    /// - Throws: what `body` throws; where that was done, and they can't be written, that a part could not be done.
    func recording(
        _ prefix: String, _ subject: String, isJSON: Bool, _ body: (_ counts: inout PrometheusText) throws -> Void
    ) throws {
        let begun = Date()
        var counts = PrometheusText()
        let result: Result<Void, any Error>
        do { result = .success(try body(&counts)) } catch { result = .failure(error) }
        var failure: Failure?
        if case .failure(let error) = result { failure = CofferCommand.failure(running: error) }
        do {
            try write(Self.frame(prefix, subject, begun: begun, failure?.exit ?? .ok) + counts.text)
        } catch {
            // What went wrong first is what counts.
            guard failure == nil else {
                Console(isJSON: isJSON).printNote("metrics were not written: \(Console.printable(error.message))")
                return try result.get()
            }
            throw Failure(
                message: "\(subject) is done, but its metrics were not written: \(error.message)", hint: error.hint,
                code: error.code, status: error.status, exit: .partlyDone)
        }
        try result.get()
    }

    private static func frame(_ prefix: String, _ subject: String, begun: Date, _ exit: ExitStatus) -> String {
        var text = PrometheusText()
        text.addGauge(
            prefix + "_info", "The version of coffer that did \(subject).",
            [(["version": CofferCommand.configuration.version], 1)])
        let end = Date()
        text.addGauge(
            prefix + "_start_timestamp_seconds", "When \(subject) began, in seconds since 1970.",
            begun.timeIntervalSince1970)
        text.addGauge(
            prefix + "_end_timestamp_seconds", "When \(subject) ended, in seconds since 1970.",
            end.timeIntervalSince1970)
        text.addGauge(
            prefix + "_duration_seconds", "How long \(subject) took.", max(0, end.timeIntervalSince(begun)))
        text.addGauge(
            prefix + "_exit_status", "What the command ended with: 0 when all was done, see coffer --help.",
            Int(exit.rawValue))
        return text.text
    }

    /// Puts it in the place of the last run's, so that nobody reads a part of it. All users may read it.
    private func write(_ text: String) throws(Failure) {
        let folder = Folder.parent(of: path)
        // Another name than the collector reads.
        let temporary = "\(folder)/.coffer-\(UUID().uuidString.lowercased()).tmp"
        // It may have become something else since.
        try check()
        try NewFile.write(Array(text.utf8), to: temporary, mode: 0o644)
        guard unsafe rename(temporary, path) == 0 else {
            let failure = Failure.system(errno, path)
            unsafe unlink(temporary)
            throw failure
        }
    }
}
