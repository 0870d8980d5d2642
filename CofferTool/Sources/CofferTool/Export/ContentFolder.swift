internal import Coffer
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A folder of contents of attachments and blobs, each in a file that is named by its SHA-1: HEX.blob.
///
/// No text of a document is part of a path.
final class ContentFolder {
    private let path: String
    /// Whether ``init(new:)`` made the folder.
    private let isNew: Bool
    /// The files that were made here: whatever else there may be by now is somebody else's.
    private var names: Set<String> = []

    /// The folder that contents are read from.
    init(_ path: String) throws(Failure) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw Failure.system(errno, path) }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw Failure.system(ENOTDIR, path) }
        self.path = path
        isNew = false
    }

    /// The folder that contents are written to: a new one, or one that is empty.
    init(new path: String) throws(Failure) {
        isNew = unsafe mkdir(path, 0o700) == 0
        self.path = path
        guard !isNew else { return }
        guard errno == EEXIST else { throw Failure.system(errno, path) }
        guard try Self.isEmpty(path) else {
            throw Failure(
                message: "\(path): it is not empty, and nothing is overwritten", code: "ioFailed", status: 500,
                exit: .failed)
        }
    }

    private static func isEmpty(_ path: String) throws(Failure) -> Bool {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: path).isEmpty
        } catch {
            throw Failure(describing: error, subject: path)
        }
    }

    /// The name of the file with the content that has this digest; nil if that is not a SHA-1.
    static func name(ofContent digest: String) -> String? {
        guard digest.utf8.starts(with: "sha1-".utf8), let bytes = Data(base64Encoded: String(digest.dropFirst(5))),
            bytes.count == 20
        else { return nil }
        return hexadecimal(bytes) + ".blob"
    }

    private func path(_ name: String) -> String { path.hasSuffix("/") ? path + name : path + "/" + name }

    /// Writes a content into its file, unless it was written before.
    ///
    /// - Parameter produce: gives the content to what it is given, in pieces, and says whether there is one.
    /// - Returns: how many bytes were written; nil if the file is there already, or the content is missing.
    func write(named name: String, _ produce: ((Data) throws -> Void) throws -> Bool) throws -> Int? {
        guard !names.contains(name) else { return nil }
        let path = path(name)
        let descriptor = NewFile.open(path)
        // The folder was empty: one that is there by now may be half written.
        guard descriptor >= 0 else { throw Failure.system(errno, path) }
        names.insert(name)
        defer { close(descriptor) }
        var byteCount = 0
        let isThere = try produce { chunk in
            try Interruption.check()
            try Console.write(chunk, to: descriptor, named: path)
            byteCount += chunk.count
        }
        guard isThere else {
            names.remove(name)
            unsafe unlink(path)
            return nil
        }
        guard fsync(descriptor) == 0 else { throw Failure.system(errno, path) }
        return byteCount
    }

    /// Sees that what was written will be found there after a power cut.
    func synchronize() throws(Failure) {
        try Folder.synchronize(path)
        if isNew { try Folder.synchronize(Folder.parent(of: path)) }
    }

    /// Takes away what was written, and the folder if it was made for that.
    func remove() {
        for name in names { unsafe unlink(path(name)) }
        if isNew { unsafe rmdir(path) }
    }

    /// The content that has this digest, to be read once; nil if there is no such file.
    func content(_ reference: ContentReference) throws(Failure) -> Blob? {
        guard let name = Self.name(ofContent: reference.digest) else { return nil }
        let path = path(name)
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else {
            if errno == ENOENT { return nil }
            throw Failure.system(errno, path)
        }
        return Blob(contentsOf: OpenFileStream(try OpenFile(path, .regular)))
    }
}
