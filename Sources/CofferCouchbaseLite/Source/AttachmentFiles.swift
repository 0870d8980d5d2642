internal import Coffer
internal import CofferGzip
internal import CofferSealing
internal import CofferVault

/// The attachment files of a source.
///
/// A file is named by the SHA-1 of what was stored: of the packed bytes, where a content is kept packed. It may be encrypted, by
/// AES-256-CBC under the database's key, with the vector before the ciphertext and no code that proves it. So nothing that is
/// read counts before its SHA-1 is known to be the name.
final class AttachmentFiles {
    /// What became of a content.
    enum Outcome {
        /// It was read, has the right SHA-1, and unpacked is this.
        case read(Found)
        case missing
        /// There is a file, and it holds something else.
        case damaged
    }

    struct Found {
        let sha1: [UInt8]
        let byteCount: Int
        /// What goes into the store; nil where nothing is written.
        let content: Blob?
    }

    private let directory: Directory?
    private let fileSystem = SourceLocation.fileSystem
    private let keys: [SymmetricKey]
    private let isMarked: Bool
    private let monitor: ImportMonitor
    /// Names that are neither all upper case nor all lower case, by their digits in upper case.
    private lazy var otherNames = listOtherNames()

    /// Beside encrypted files is one of that name, which holds `AES`.
    private static let markerName = "_encryption"
    private static let pieceByteCount = 256 << 10

    /// - Parameter keys: that may have encrypted the files.
    init(_ directory: Directory?, keys: [SymmetricKey], monitor: ImportMonitor) {
        self.directory = directory
        self.keys = keys
        self.monitor = monitor
        isMarked = Self.isMarked(directory)
    }

    /// Whether the files in a directory are said to be encrypted.
    static func isMarked(_ directory: Directory?) -> Bool {
        guard let directory else { return false }
        return (try? SourceLocation.fileSystem.status(of: markerName, in: directory)) != nil
    }

    /// Reads a content to its end.
    ///
    /// - Parameters:
    ///   - digest: the SHA-1 of what was stored.
    ///   - length: how long it is when it is unpacked; nil where nobody says.
    ///   - database: which gets it; nil where it is only checked.
    /// - Throws: `noSpace` (507), `cancelled` (499), and what else is not about this one content.
    func read(
        _ digest: [UInt8], isGzip: Bool, length: Int?, into database: Database?
    ) throws(CofferError) -> Outcome {
        guard let directory, let file = try open(digest, in: directory) else { return .missing }
        // Whatever the marker says: a change of the key that was cut short left both kinds.
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
            // What is no file, or can't be opened, is a content that is not there.
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

    /// One attempt at a content, with one key or none.
    private final class Reading {
        private let file: File
        private let key: SymmetricKey?
        private let decoder: GzipDecoder?
        private let length: Int?
        private let monitor: ImportMonitor
        private var byteCount = 0
        /// Of what comes out.
        private(set) var sha1: [UInt8] = []

        init(file: File, key: SymmetricKey?, isGzip: Bool, length: Int?, monitor: ImportMonitor) {
            self.file = file
            self.key = key
            self.length = length
            self.monitor = monitor
            decoder = isGzip ? GzipDecoder() : nil
        }

        /// The length of what comes out; nil where it is not the content.
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

        /// Takes what was stored; false where it can't be what it should be.
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
                // So that a few bytes don't fill the disk.
                if let length, byteCount > length { return false }
                unpacked.update(piece)
                try content?.write(piece)
            }
        }
    }
}
