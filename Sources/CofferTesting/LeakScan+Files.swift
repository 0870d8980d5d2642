public import Coffer
internal import CofferVault
public import Foundation

extension LeakScan {
    /// Searches all files below `url`, or the one file that it is.
    ///
    /// A file that is removed meanwhile is left out. What is neither a file nor a folder is not opened, and links are not
    /// followed: the report lists them. Of a sparse file only its data are read. No more than a handful of files and folders
    /// are open at a time, however deep folders are nested.
    ///
    /// - Throws: `ioFailed` (500) for what can't be read, or when nothing is there.
    public func search(_ url: URL) throws(CofferError) -> Report { try search(url, depthLimit: 100_000) }

    /// The same, where folders that are deeper than `depthLimit` are said to be, and not opened: what is kept of each level
    /// until it ends must not fill the memory.
    func search(_ url: URL, depthLimit: Int) throws(CofferError) -> Report {
        var search = FileSearch(scan: self, depthLimit: depthLimit)
        let root = url.path(percentEncoded: false)
        guard let status = FileStatus(path: root) else {
            throw CofferError(.ioFailed, of: url.lastPathComponent, "there is no such file or directory")
        }
        let name = FileName(url.lastPathComponent)
        search.names(name, path: name.description)
        if status.kind == .directory {
            try search.tree(at: root, called: name.description)
        } else {
            let parent = url.deletingLastPathComponent().path(percentEncoded: false)
            let folder = try readable(name.description) { () throws(CofferError) in
                try search.fileSystem.openDirectory(path: parent.isEmpty ? "." : parent)
            }
            try search.entry(name, in: folder, status.kind, path: name.description)
        }
        return search.report
    }
}

/// One search under way.
private struct FileSearch {
    let scan: LeakScan
    let depthLimit: Int
    let fileSystem = SystemFileSystem()
    var report = LeakScan.Report()

    init(scan: LeakScan, depthLimit: Int) {
        self.scan = scan
        self.depthLimit = depthLimit
    }

    mutating func tree(at root: String, called name: String) throws(CofferError) {
        var walk = try readable(name) { () throws(CofferError) in
            try TreeWalk(below: fileSystem.openDirectory(path: root), fileSystem, depthLimit: depthLimit)
        }
        while true {
            let step: TreeWalk.Step?
            do throws(CofferError) {
                step = try walk.step()
            } catch {
                throw CofferError(.ioFailed, of: name, "it can't be listed", cause: error)
            }
            switch step {
            case .entry(let entry, let parent, let status)?:
                let path = walk.path(of: entry)
                names(entry, path: path)
                if status.kind != .directory { try self.entry(entry, in: parent, status.kind, path: path) }
            case .unreadable(let entry, _, let error)?:
                throw CofferError(.ioFailed, of: walk.path(of: entry), "it can't be listed", cause: error)
            case .tooDeep(let entry, _)?:
                report.skipped.append(
                    SkippedEntry(path: walk.path(of: entry), reason: "a folder below \(depthLimit) others"))
                report.isComplete = false
            case .end?: break
            case nil: return
            }
        }
    }

    /// Searches the name itself: each folder on the way there was searched before.
    mutating func names(_ name: FileName, path: String) { report.leaks += scan.leaks(inName: name.bytes, path: path) }

    mutating func entry(
        _ name: FileName, in parent: Directory, _ kind: FileStatus.Kind, path: String
    ) throws(CofferError) {
        guard kind == .file else { return skip(path, kind) }
        let file: File
        do throws(CofferError) {
            file = try fileSystem.openFile(name, in: parent)
        } catch {
            if error.systemErrorNumber == ENOENT { return }
            throw CofferError(.ioFailed, of: path, "it can't be opened: \(error.detail ?? "")", cause: error)
        }
        // Something else may have come into its place.
        let status = try readable(path) { () throws(CofferError) in try fileSystem.status(of: file) }
        guard status.kind == .file else { return skip(path, status.kind) }
        var pieces = DataPieces(of: file, margin: scan.overlap, fileSystem)
        report.leaks += try scan.leaks(called: path) { () throws(CofferError) in
            try readable(path) { () throws(CofferError) in try pieces.next() }
        }
        report.fileCount += 1
        report.byteCount += pieces.byteCount
        report.holeByteCount += pieces.holeByteCount
    }

    private mutating func skip(_ path: String, _ kind: FileStatus.Kind) {
        report.skipped.append(SkippedEntry(path: path, reason: kind.description))
    }
}

/// What a piece of a file holds, and where it is.
struct Piece {
    let offset: Int
    let bytes: [UInt8]
}

/// The data of a file in order, and of each hole as many zeros at either end as a marker that begins or ends in it may have.
private struct DataPieces {
    private let file: File
    private let margin: Int
    private let fileSystem: SystemFileSystem
    private var position = 0
    private var data = 0..<0
    private var zeros: [Piece] = []
    private(set) var byteCount = 0
    private(set) var holeByteCount = 0

    private static let pieceByteCount = 1 << 20

    init(of file: File, margin: Int, _ fileSystem: SystemFileSystem) {
        self.file = file
        self.margin = margin
        self.fileSystem = fileSystem
    }

    mutating func next() throws(CofferError) -> Piece? {
        while zeros.isEmpty && position >= data.upperBound {
            if let next = try fileSystem.data(of: file, from: position) {
                skip(to: next.lowerBound)
                data = next
            } else {
                // What has no length, as files that the system makes up, is read to its end all the same.
                skip(to: max(position, try fileSystem.status(of: file).byteCount))
                data = position..<Int.max
            }
        }
        if !zeros.isEmpty { return zeros.removeFirst() }
        let bytes = try fileSystem.read(
            min(Self.pieceByteCount, data.upperBound - position), from: file, at: position)
        guard !bytes.isEmpty else { return nil }
        defer { position += bytes.count }
        byteCount += bytes.count
        return Piece(offset: position, bytes: bytes)
    }

    private mutating func skip(to end: Int) {
        let count = end - position
        holeByteCount += count
        if count > 2 * margin {
            zeros = [position, end - margin].map { Piece(offset: $0, bytes: [UInt8](repeating: 0, count: margin)) }
        } else if count > 0 {
            zeros = [Piece(offset: position, bytes: [UInt8](repeating: 0, count: count))]
        }
        position = end
    }
}

/// The same, with what can't be read called `name`.
private func readable<Value>(_ name: String, _ body: () throws(CofferError) -> Value) throws(CofferError) -> Value {
    do throws(CofferError) {
        return try body()
    } catch {
        throw CofferError(.ioFailed, of: name, "it can't be read: \(error.detail ?? "")", cause: error)
    }
}
