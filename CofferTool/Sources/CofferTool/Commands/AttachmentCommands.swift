internal import ArgumentParser
internal import Coffer

struct AttachCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "attach",
        abstract: "Attach a file to a document.",
        usage: "coffer attach <store> <id> <name> <file> [<options>]",
        discussion: """
            The document's next revision has the file, which replaces an attachment of the same name. A missing \
            document is created, empty. The result is the new revision's id. A file of any length needs no more memory \
            than a short one.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of the document.")
    var id: String

    @Argument(help: "The name of the attachment.")
    var name: String

    @Argument(help: "The file to attach, or - for standard input.", completion: .file())
    var file: String

    @Option(
        name: .customLong("type"),
        help: ArgumentHelp("The media type, such as image/png. Coffer guesses none.", valueName: "mime"))
    var contentType: String?

    func run(_ console: Console) throws {
        if file == "-", try arguments.keySource()?.usesStandardInput == true {
            throw Failure.usage("standard input cannot be both the key and the attachment")
        }
        let input = file == "-" ? .standardInput : try OpenFile(file)
        let revision = try arguments.withDatabase(readOnly: false) { database in
            Interruption.watch()
            let progress = ProgressMeter(total: input.byteCount)
            defer { progress.clear() }
            let draft = try database.document(withID: id).newRevision()
            try draft.setAttachment(
                named: name, contentType: contentType, contentsOf: OpenFileStream(input, progress))
            try Interruption.check()
            return try draft.save()
        }
        guard console.isJSON else { return try console.printResult(revision.revisionID.description) }
        guard let attachment = try revision.attachment(named: name) else { return }
        var line = attachment.line(ofDocument: id)
        line.add("revision", revision.revisionID.description)
        try console.printResult(line.finished)
    }
}

extension Attachment {
    /// What is known of the attachment, as JSON. Its content is not touched.
    func line(ofDocument id: String) -> JSONLine {
        var line = JSONLine(type: "attachment")
        line.add("id", id)
        line.add("name", name)
        if let contentType { line.add("contentType", contentType) }
        line.add("digest", digest)
        line.add("length", length)
        return line
    }
}

struct CatCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "cat",
        abstract: "Write an attachment's content to standard output.",
        discussion: """
            Every byte is checked before it is written. At damage the output ends, with exit status 26. With --json \
            the content is written as it is, too, and only errors are JSON.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of the document.")
    var id: String

    @Argument(help: "The name of the attachment.")
    var name: String

    @Option(
        help: ArgumentHelp(
            "Only the bytes from A to B, both included, counted from 0. Little else is read.",
            valueName: "a-b"))
    var range: String?

    func run(_ console: Console) throws {
        let range = try range.map { text throws(Failure) in try ByteRange(text) }
        try arguments.withDatabase(readOnly: true) { database in
            let revision = try database.existingRevision(ofDocument: id)
            guard let attachment = try revision.attachment(named: name) else {
                throw Failure.attachmentNotFound(name, id, "no attachment has that name")
            }
            if let range {
                try write(attachment, range, to: console)
            } else {
                guard let chunks = try attachment.chunks else { throw Failure.attachmentNotFound(name, id, notHere) }
                try chunks.forEach { chunk in try console.printContent(chunk) }
            }
        }
    }

    private func write(_ attachment: Attachment, _ range: ByteRange, to console: Console) throws {
        guard range.last < attachment.length else {
            throw Failure(
                message: "attachment \(name) of document \(id): it has \(attachment.length) bytes, so that "
                    + "\(range.first)-\(range.last) is beyond its end (400)",
                code: "invalidArgument", status: 400, exit: .failed)
        }
        var offset = range.first
        while offset <= range.last {
            let end = min(offset + AttachmentChunks.byteCount, range.last + 1)
            guard let piece = try attachment.content(in: offset..<end) else {
                throw Failure.attachmentNotFound(name, id, notHere)
            }
            try console.printContent(piece)
            offset = end
        }
    }

    private var notHere: String { "its content is not in this store" }
}

/// A range of bytes as somebody writes it: `0-9` are the first ten.
struct ByteRange: Equatable {
    let first: Int
    let last: Int

    init(_ text: String) throws(Failure) {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        let areDigits = parts.allSatisfy { part in
            !part.isEmpty && part.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
        }
        guard parts.count == 2, areDigits, let first = Int(String(parts[0]) ?? ""),
            let last = Int(String(parts[1]) ?? ""), first <= last
        else {
            throw Failure.usage("\(text): not a range of bytes", hint: "0-9 are the first ten bytes")
        }
        self.first = first
        self.last = last
    }
}

extension Failure {
    static func attachmentNotFound(_ name: String, _ id: String, _ detail: String) -> Failure {
        Failure(
            message: "attachment \(name) of document \(id): attachment not found: \(detail) (404)",
            code: "attachmentNotFound", status: 404, exit: .failed)
    }
}
