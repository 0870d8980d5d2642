internal import Coffer
internal import CofferGzip
internal import CofferSealing
internal import CofferVault

/// The attachment files of a source.
///
/// A file's name is the SHA-1 of the stored bytes; for a compressed content, of the compressed bytes. The file may be
/// encrypted with AES-256-CBC under the database's key, with the initialization vector before the ciphertext and
/// without a MAC. So a content counts only if its SHA-1 equals the name.
final class AttachmentFiles {
    /// The outcome of reading a content.
    enum Outcome {
        /// It was read and has the right SHA-1. This is the content, decompressed.
        case read(Found)
        case missing
        /// There is a file, but it holds something else.
        case damaged
    }

    struct Found {
        let sha1: [UInt8]
        let byteCount: Int
        /// The content in the new store; nil for a check.
        let content: Blob?
    }

    private let directory: Directory?
    private let fileSystem = SourceLocation.fileSystem
    private let keys: [SymmetricKey]
    private let isMarked: Bool
    private let monitor: ImportMonitor
    /// Names in mixed case, by their digits in lower case.
    private lazy var otherNames = listOtherNames()

    /// A file of this name, with the content `AES`, marks a folder of encrypted files.
    private static let markerName = "_encryption"
    private static let pieceByteCount = 256 << 10

    /// - Parameter keys: the keys that the files may be encrypted under.
    init(_ directory: Directory?, keys: [SymmetricKey], monitor: ImportMonitor) {
        self.directory = directory
        self.keys = keys
        self.monitor = monitor
        isMarked = Self.isMarked(directory)
    }

    /// Whether a directory is marked as one of encrypted files.
    static func isMarked(_ directory: Directory?) -> Bool {
        guard let directory else { return false }
        return (try? SourceLocation.fileSystem.status(of: markerName, in: directory)) != nil
    }

    /// Reads a content to its end.
    ///
    /// - Parameters:
    ///   - digest: the SHA-1 of the stored bytes.
    ///   - isGzip: whether they are compressed.
    ///   - length: the length of the decompressed content; nil if the source doesn't say.
    ///   - database: the database that gets the content; nil for a check.
    /// - Throws: `noSpace` (507), `cancelled` (499), and other errors that are not about this content alone.
    func read(
        _ digest: [UInt8], isGzip: Bool, length: Int?, into database: Database?
    ) throws(CofferError) -> Outcome {
        guard let directory, let file = try open(digest, in: directory) else { return .missing }
        // Both ways, whatever the marker says: a key change that was interrupted left encrypted and plain files.
        let keys: [SymmetricKey?] = isMarked ? self.keys + [nil] : [nil] + self.keys
        for key in keys {
            let content = try database?.beginContent()
            do throws(CofferError) {
                let reading = Reading(file: file, key: key, isGzip: isGzip, length: length, monitor: monitor)
                if let byteCount = try reading.run(digest, content) {
                    let blob = try content?.finish()
                    return .read(Found(sha1: reading.sha1, byteCount: byteCount, content: blob))
                }
                content?.cancel()
            } catch {
                content?.cancel()
                throw error
            }
        }
        return .damaged
    }

    private func open(_ digest: [UInt8], in directory: Directory) throws(CofferError) -> File? {
        let digits = hexadecimal(digest)
        var names = [digits.uppercased() + ".blob", digits + ".blob"].map { FileName($0) }
        if let other = otherNames[digits] { names.append(other) }
        for name in names {
            // If it is not a file, or can't be opened, the content is missing.
            guard let status = try fileSystem.status(of: name, in: directory), status.kind == .file else { continue }
            if let file = try? fileSystem.openFile(name, in: directory) { return file }
        }
        return nil
    }

    private func listOtherNames() -> [String: FileName] {
        guard let directory, let names = try? fileSystem.names(in: directory) else { return [:] }
        var found: [String: FileName] = [:]
        for name in names {
            guard let text = name.text, text.lowercased().hasSuffix(".blob"), text.utf8.count == 45 else { continue }
            let digits = String(text.dropLast(5))
            guard text != digits.uppercased() + ".blob", text != digits.lowercased() + ".blob" else { continue }
            found[digits.lowercased()] = name
        }
        return found
    }

    /// One attempt to read a content, with one key or without.
    private final class Reading {
        private let file: File
        private let key: SymmetricKey?
        private let decoder: GzipDecoder?
        private let length: Int?
        private let monitor: ImportMonitor
        private var byteCount = 0
        /// The SHA-1 of the content, decompressed.
        private(set) var sha1: [UInt8] = []

        init(file: File, key: SymmetricKey?, isGzip: Bool, length: Int?, monitor: ImportMonitor) {
            self.file = file
            self.key = key
            self.length = length
            self.monitor = monitor
            decoder = isGzip ? GzipDecoder() : nil
        }

        /// Returns the length of the content, decompressed; nil if the file holds something else.
        func run(_ digest: [UInt8], _ content: IncomingContent?) throws(CofferError) -> Int? {
            let fileSystem = SourceLocation.fileSystem
            var stored = try StreamingDigest(.sha1)
            var unpacked = try StreamingDigest(.sha1)
            var offset = 0
            if let key {
                let vector = try fileSystem.read(PaddedCipher.vectorByteCount, from: file, at: 0)
                guard vector.count == PaddedCipher.vectorByteCount else { return nil }
                offset = vector.count
                var cipher = try PaddedCipher(.decrypting, key: key, vector: vector)
                while let bytes = try next(&offset) {
                    guard try take(try cipher.update(bytes), &stored, &unpacked, content) else { return nil }
                }
                guard let end = cipher.finish(), try take(end, &stored, &unpacked, content) else { return nil }
            } else {
                while let bytes = try next(&offset) {
                    guard try take(bytes, &stored, &unpacked, content) else { return nil }
                }
            }
            guard stored.finalize() == digest, decoder?.isOver ?? true else { return nil }
            sha1 = decoder == nil ? digest : unpacked.finalize()
            return byteCount
        }

        private func next(_ offset: inout Int) throws(CofferError) -> [UInt8]? {
            try monitor.checkCancelled()
            let bytes = try SourceLocation.fileSystem.read(AttachmentFiles.pieceByteCount, from: file, at: offset)
            offset += bytes.count
            return bytes.isEmpty ? nil : bytes
        }

        /// Takes stored bytes; false if they can't belong to the content.
        private func take(
            _ bytes: [UInt8], _ stored: inout StreamingDigest, _ unpacked: inout StreamingDigest,
            _ content: IncomingContent?
        ) throws(CofferError) -> Bool {
            guard !bytes.isEmpty else { return true }
            stored.update(bytes)
            guard let decoder else {
                byteCount += bytes.count
                try content?.write(bytes)
                return true
            }
            decoder.append(bytes)
            while true {
                let piece: [UInt8]?
                do throws(NotGzip) { piece = try decoder.next() } catch { return false }
                guard let piece else { return true }
                byteCount += piece.count
                // A few compressed bytes must not fill the disk.
                if let length, byteCount > length { return false }
                unpacked.update(piece)
                try content?.write(piece)
            }
        }
    }
}
