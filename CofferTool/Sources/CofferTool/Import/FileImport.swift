internal import Coffer

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
