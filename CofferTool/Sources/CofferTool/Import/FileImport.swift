internal import Coffer

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Saves files as one document each with the file attached, in the transaction of the caller.
struct FileImport {
    let database: Database

    func run(_ tree: FileTree, _ progress: ProgressMeter) throws {
        for file in tree.files {
            try Interruption.check()
            do {
                try attach(file, progress)
            } catch let error as CofferError {
                throw Failure(error, in: file.path)
            }
        }
        try Interruption.check()
    }

    private func attach(_ file: FileTree.File, _ progress: ProgressMeter) throws {
        let document = database.document(withID: file.id)
        guard try document.currentRevision == nil else {
            throw Failure(
                message: "\(file.path): document \(file.id): conflict: the document exists already (409)",
                code: "conflict", status: 409, exit: .failed)
        }
        let draft = try document.newRevision()
        try draft.setAttachment(
            named: file.name, contentType: ContentType.guessed(ofFileNamed: file.name),
            contentsOf: OpenFileStream(OpenFile(file.path, .regular, identity: file.identity), progress))
        try draft.save()
    }
}

extension Failure {
    /// An error of the library about a file; one of this command's that led to it names that itself.
    fileprivate init(_ error: CofferError, in file: String) {
        let failure = Failure(error)
        guard !(error.cause is Failure) else {
            self = failure
            return
        }
        self.init(
            message: "\(file): \(failure.message)", hint: failure.hint, code: failure.code, status: failure.status,
            exit: failure.exit)
    }
}

/// What kinds of content the names of files tell.
enum ContentType {
    /// Names in IANA's register of media types, but for audio and archives where everybody uses another.
    private static let types = [
        "css": "text/css", "csv": "text/csv", "htm": "text/html", "html": "text/html", "ics": "text/calendar",
        "js": "text/javascript", "md": "text/markdown", "txt": "text/plain", "vcf": "text/vcard",
        "gif": "image/gif", "heic": "image/heic", "jpeg": "image/jpeg", "jpg": "image/jpeg", "png": "image/png",
        "svg": "image/svg+xml", "tif": "image/tiff", "tiff": "image/tiff", "webp": "image/webp",
        "flac": "audio/flac", "m4a": "audio/mp4", "mp3": "audio/mpeg", "ogg": "audio/ogg", "wav": "audio/wav",
        "mov": "video/quicktime", "mp4": "video/mp4", "webm": "video/webm",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "odp": "application/vnd.oasis.opendocument.presentation",
        "ods": "application/vnd.oasis.opendocument.spreadsheet", "odt": "application/vnd.oasis.opendocument.text",
        "epub": "application/epub+zip", "gz": "application/gzip", "json": "application/json",
        "pdf": "application/pdf", "rtf": "application/rtf", "tar": "application/x-tar", "xml": "application/xml",
        "zip": "application/zip",
    ]

    /// What a file of that name holds, as its extension says; nil if that says nothing.
    static func guessed(ofFileNamed name: String) -> String? {
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return nil }
        return types[name[name.index(after: dot)...].lowercased()]
    }
}

/// The files that an import attaches: those that were named, and all that are anywhere in the folders that were named.
///
/// Nothing is left out in silence. A symbolic link, a pipe or a device among them is a failure. Folders are gone through by
/// their descriptors, and each file is known by its device and number: nobody can lead the import elsewhere meanwhile, by
/// putting a link in the place of a folder.
struct FileTree {
    struct File: Equatable {
        let path: String
        let identity: FileIdentity
        /// The path below the folder that was named; of a file that was named itself, its name.
        let id: String
        let byteCount: Int

        var name: String { id.split(separator: "/").last.map(String.init) ?? id }
    }

    private(set) var files: [File] = []

    /// How many bytes the files hold together.
    var byteCount: Int { files.reduce(0) { $0 + $1.byteCount } }

    private let store: FileIdentity?

    /// `store` is the folder that the files go to, which can't be among them.
    init(_ paths: [String], importedTo store: String) throws(Failure) {
        self.store = FileIdentity(path: store)
        for path in paths {
            let count = files.count
            let name = path.split(separator: "/").last.map(String.init) ?? path
            try add(path, in: AT_FDCWD, path: path, id: nil, name: name)
            guard files.count > count else { throw Failure.usage("\(path): there is no file in it") }
        }
        files.sort { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }
    }

    /// Adds a file, or what is in a folder: `entry` of the folder whose descriptor is `parent`.
    ///
    /// - Parameters:
    ///   - path: what messages call it.
    ///   - id: nil for what was named itself, as a folder's name is not part of ids.
    private mutating func add(
        _ entry: String, in parent: Int32, path: String, id: String?, name: String
    ) throws(Failure) {
        var status = stat()
        guard unsafe fstatat(parent, entry, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            throw Failure.system(errno, path)
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG:
            files.append(
                File(
                    path: path, identity: FileIdentity(status), id: id ?? name, byteCount: Int(status.st_size)))
        case S_IFDIR:
            guard FileIdentity(status) != store else { throw Failure.notAFile(path, "it is the store itself") }
            try addEntries(of: entry, FileIdentity(status), in: parent, path: path, id: id)
        case S_IFLNK:
            throw Failure.notAFile(path, "a symbolic link")
        default:
            throw Failure.notAFile(path, "neither a file nor a folder")
        }
    }

    private mutating func addEntries(
        of entry: String, _ identity: FileIdentity, in parent: Int32, path: String, id: String?
    ) throws(Failure) {
        let folder = unsafe openat(parent, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard folder >= 0 else { throw Failure.system(errno, path) }
        defer { close(folder) }
        var status = stat()
        guard unsafe fstat(folder, &status) == 0, FileIdentity(status) == identity else {
            throw Failure.notAFile(path, "another folder took its place")
        }
        let prefix = path.hasSuffix("/") ? path : path + "/"
        for name in try Self.names(in: folder, path) {
            try add(name, in: folder, path: prefix + name, id: id.map { $0 + "/" + name } ?? name, name: name)
        }
    }

    /// The names of what is in the folder whose descriptor is `folder`.
    private static func names(in folder: Int32, _ path: String) throws(Failure) -> [String] {
        // The list takes its descriptor over.
        let own = unsafe openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard own >= 0 else { throw Failure.system(errno, path) }
        guard let list = unsafe fdopendir(own) else {
            let number = errno
            close(own)
            throw Failure.system(number, path)
        }
        defer { unsafe _ = closedir(list) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = unsafe readdir(list) else {
                guard errno == 0 else { throw Failure.system(errno, path) }
                return names
            }
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { start in
                unsafe start.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { start in
                    unsafe String(validatingCString: start)
                }
            }
            guard let name else { throw Failure.notAFile(path, "a name in it is not UTF-8") }
            if name != "." && name != ".." { names.append(name) }
        }
    }
}
