import Foundation

/// A folder for one test, and the command run in it.
final class Workspace: Sendable {
    let folder: URL

    /// - Parameter inMemory: for much data, where the system has a file system in memory.
    init(inMemory: Bool = false) throws {
        let memory = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
        let isThere = inMemory && FileManager.default.isWritableFile(atPath: memory.path(percentEncoded: false))
        let parent = isThere ? memory : FileManager.default.temporaryDirectory
        folder = parent.appending(path: "coffer-tool-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    /// A folder that is there, as on another disk. It goes as any other.
    init(at folder: URL) { self.folder = folder }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    /// Runs `coffer` with those arguments.
    @discardableResult
    func coffer(
        _ arguments: String..., surroundings: CofferProcess.Surroundings = CofferProcess.Surroundings()
    ) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments, in: folder, surroundings)
    }

    /// Runs `coffer` with those arguments and that standard input.
    @discardableResult
    func coffer(_ arguments: String..., input: String) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments, in: folder, CofferProcess.Surroundings(input: Data(input.utf8)))
    }

    /// Runs a line of the shell in which `$coffer` is the command, and the key is the file `key`.
    func shell(_ line: String) throws -> (status: Int32, output: String) {
        let shell = Process()
        let output = Pipe()
        shell.executableURL = URL(filePath: "/bin/sh")
        shell.currentDirectoryURL = folder
        shell.environment = ["PATH": "/usr/bin:/bin", "coffer": CofferProcess.executable.path(percentEncoded: false)]
        shell.arguments = ["-c", line]
        shell.standardOutput = output
        try shell.run()
        let shown = try output.fileHandleForReading.readToEnd() ?? Data()
        shell.waitUntilExit()
        return (shell.terminationStatus, String(decoding: shown, as: UTF8.self))
    }

    /// Writes a file that only its owner can read, as the files of keys should be, into the folder.
    func write(_ text: String, to name: String) throws {
        try write(Data(text.utf8), to: name)
    }

    func write(_ data: Data, to name: String) throws {
        let file = folder.appending(path: name)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try data.write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
    }

    /// Makes the store `people.coffer`, which 32 bytes open that cost no time, and leaves them in the file `key`.
    func makeStore() throws {
        try write(Self.key, to: "key")
        try coffer("create", "people.coffer", "--key", "raw+file:key")
    }

    static let key = Data(0..<32)

    /// Every file under `name`, with its contents.
    func contents(of name: String) throws -> [String: Data] {
        let top = folder.appending(path: name)
        var contents: [String: Data] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: top.path(percentEncoded: false)) {
            let file = top.appending(path: path)
            let isFolder = try file.resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true
            contents[path] = isFolder ? Data() : try Data(contentsOf: file)
        }
        return contents
    }
}
