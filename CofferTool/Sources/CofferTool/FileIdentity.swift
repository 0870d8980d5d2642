#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Which file or folder something is, whatever it is called.
struct FileIdentity: Equatable {
    private let device: dev_t
    private let number: ino_t

    init(_ status: stat) { (device, number) = (status.st_dev, status.st_ino) }

    /// What is at `path`, behind symbolic links; nil if nothing is.
    init?(path: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// What is open; nil if nothing is.
    init?(descriptor: Int32) {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Whether the folder at `path` is this one, or anywhere in it.
    func contains(folder path: String) -> Bool {
        var path = path
        var last: FileIdentity?
        // The topmost folder is above itself.
        while let folder = FileIdentity(path: path), folder != last {
            if folder == self { return true }
            last = folder
            path += "/.."
        }
        return false
    }
}
