internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Where the lines of an export go: standard output, or a new file, which has its name only when it is whole.
struct ExportFile: ~Copyable {
    private let descriptor: Int32
    /// What messages call it.
    private let name: String
    /// The file's name, and the one that it has until it is whole; nil for standard output.
    private let paths: (final: String, partial: String)?
    private let isRegular: Bool
    /// Whether a terminal gets the lines without the characters that it would act on.
    private let escapes: Bool
    private var isFinished = false
    private var pending: [UInt8] = []

    /// How many bytes were taken so far.
    private(set) var byteCount = 0

    private static let pendingByteCountLimit = 1 << 16

    /// Standard output.
    ///
    /// - Parameter escapes: whether a terminal gets the lines without the characters that it would act on.
    init(escapes: Bool) {
        descriptor = STDOUT_FILENO
        name = "standard output"
        paths = nil
        isRegular = OpenFile.isRegular(descriptor)
        self.escapes = escapes
    }

    /// A new file that only its owner can read. There must be none of that name.
    init(_ path: String) throws(Failure) {
        let partial = path + ".partial"
        self.init(descriptor: try Self.create(partial, for: path), path: path, partial: partial)
    }

    private init(descriptor: Int32, path: String, partial: String) {
        self.descriptor = descriptor
        name = path
        paths = (path, partial)
        isRegular = true
        escapes = false
    }

    private static func create(_ partial: String, for path: String) throws(Failure) -> Int32 {
        try checkIsFree(path)
        let descriptor = NewFile.open(partial)
        if descriptor >= 0 { return descriptor }
        guard errno == EEXIST else { throw Failure.system(errno, path) }
        throw Failure(
            message: "\(partial): it exists already",
            hint: "a killed export leaves such a file: remove it, unless an export is under way",
            code: "ioFailed", status: 500, exit: .failed)
    }

    deinit {
        guard let paths else { return }
        close(descriptor)
        if !isFinished { unsafe unlink(paths.partial) }
    }

    /// Takes a line, and adds its end.
    mutating func write(line: String) throws(Failure) {
        let line = (escapes ? TerminalText.escaped(line) : line) + "\n"
        byteCount += line.utf8.count
        pending.append(contentsOf: line.utf8)
        if pending.count >= Self.pendingByteCountLimit { try flush() }
    }

    /// Writes what is pending, and gives the file its name, when all of it is on the disk.
    mutating func finish() throws(Failure) {
        try flush()
        guard let paths else { return }
        guard fsync(descriptor) == 0 else { throw Failure.system(errno, name) }
        // A link takes nobody's place. Where the file system has none, what is there by now would be replaced.
        if unsafe link(paths.partial, paths.final) == 0 {
            unsafe unlink(paths.partial)
        } else if errno == EEXIST {
            throw Self.exists(paths.final)
        } else {
            try Self.checkIsFree(paths.final)
            guard unsafe rename(paths.partial, paths.final) == 0 else { throw Failure.system(errno, name) }
        }
        isFinished = true
        try Folder.synchronize(Folder.parent(of: paths.final))
    }

    private mutating func flush() throws(Failure) {
        defer { pending.removeAll(keepingCapacity: true) }
        try Interruption.check()
        guard !isRegular else { return try Console.write(pending, to: descriptor, named: name) }
        var rest = pending[...]
        while !rest.isEmpty {
            // So much goes into a pipe that takes anything, and so a signal finds nobody waiting in the writing itself.
            try Interruption.waitForRoom(in: descriptor)
            try Console.write(rest.prefix(Int(PIPE_BUF)), to: descriptor, named: name)
            rest = rest.dropFirst(Int(PIPE_BUF))
        }
    }

    private static func checkIsFree(_ path: String) throws(Failure) {
        var status = stat()
        if unsafe lstat(path, &status) == 0 { throw exists(path) }
    }

    private static func exists(_ path: String) -> Failure {
        Failure(
            message: "\(path): it exists already, and nothing is overwritten", code: "ioFailed", status: 500,
            exit: .failed)
    }
}
