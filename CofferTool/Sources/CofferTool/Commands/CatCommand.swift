internal import ArgumentParser
internal import Coffer

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
