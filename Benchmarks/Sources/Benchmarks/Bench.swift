internal import CByHand
internal import Coffer
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// What all rows have in common: the settings, the machine, and a directory to write in.
///
/// Nothing is removed before the end. Without a journal, ext4 looks for an inode that was not freed in the last minutes, one by
/// one, so that after many removals creating a file costs ten times what it should, on either side.
final class Bench {
    let settings: Settings
    let machine: Machine
    let directory: URL
    let byHand: ByHand
    private var nameCount = 0
    private var documentSets: [Bool: DocumentSet] = [:]
    private let start = ContinuousClock.now
    /// Who stops a run is left no gigabytes.
    private let signals: [any DispatchSourceSignal]

    init(_ settings: Settings) throws {
        self.settings = settings
        try Self.expectSpace(settings.isQuick ? 4 : 30, in: settings.parent)
        directory = settings.parent.appending(path: "coffer-benchmarks-\(UUID())", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        signals = [SIGINT, SIGTERM].map { [directory] number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                try? FileManager.default.removeItem(at: directory)
                exit(130)
            }
            source.resume()
            return source
        }
        do {
            machine = try Machine(measuringIn: directory)
            byHand = try ByHand()
        } catch {
            try? FileManager.default.removeItem(at: directory)
            throw error
        }
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    /// `full`, or `quick` if that was asked for.
    func size(_ full: Int, quick: Int) -> Int { settings.isQuick ? quick : full }

    func newName(_ kind: String) -> String {
        nameCount += 1
        return "\(kind)\(nameCount)"
    }

    /// A new, encrypted store.
    func newStore(durability: Durability = .full, cacheByteCount: Int? = nil) throws -> Database {
        try Self.openStore(
            named: newName("store"), in: directory, durability: durability, cacheByteCount: cacheByteCount)
    }

    /// Under a raw key, as nothing here is about passwords.
    static func openStore(
        named name: String, in directory: URL, durability: Durability = .full, cacheByteCount: Int? = nil
    ) throws -> Database {
        var options = DatabaseOptions()
        options.create = true
        options.durability = durability
        if let cacheByteCount { options.cacheByteCount = cacheByteCount }
        options.encryptionKey = try key()
        return try Manager(directory: directory).openDatabase(named: name, options: options)
    }

    /// The key of all stores.
    static func key() throws -> SymmetricKey { try SymmetricKey(data: Data(repeating: 7, count: 32)) }

    /// 100,000 documents, or 10,000: made once.
    func documents(isInOrder: Bool) throws -> DocumentSet {
        if let made = documentSets[isInOrder] { return made }
        let set = try DocumentSet(count: size(100_000, quick: 10_000), isInOrder: isInOrder)
        documentSets[isInOrder] = set
        return set
    }

    /// A new directory for files by hand.
    func newFolder() throws -> Folder { try Folder(directory.appending(path: newName("files"))) }

    /// A path for a new file by hand.
    func newPath(_ kind: String) -> String { directory.appending(path: newName(kind)).path }

    /// Writes what is still to be written, so that nobody pays for what was done before.
    func settle() throws {
        let folder = try Folder(directory)
        try expect(by_hand_sync_all(folder.descriptor), "syncfs failed: \(errno)")
    }

    /// Tells on standard error how far the run is.
    func say(_ text: String) {
        let seconds = Int((ContinuousClock.now - start).seconds)
        FileHandle.standardError.write(Data("\(String(format: "%4d s", seconds))  \(text)\n".utf8))
    }

    private static func expectSpace(_ gigabytes: Int, in directory: URL) throws {
        var system = statvfs()
        try expect(unsafe statvfs(directory.path, &system) == 0, "can't look at \(directory.path): \(errno)")
        let free = Double(system.f_bavail) * Double(system.f_frsize) / 1e9
        try expect(
            free >= Double(gigabytes),
            "\(directory.path) has \(Int(free)) GB free, and \(gigabytes) GB are needed: see --directory")
    }
}

/// A directory that is open.
final class Folder: Sendable {
    let descriptor: Int32

    init(_ url: URL) throws {
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        descriptor = unsafe open(url.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        try expect(descriptor >= 0, "can't open \(url.path): \(errno)")
    }

    deinit { close(descriptor) }
}

/// Many contents of one size, each of its own.
struct Contents {
    let byteCount: Int
    let all: [Data]

    init(count: Int, byteCount: Int) {
        self.byteCount = byteCount
        all = (0..<count).map { seed in
            var data = Data(count: byteCount)
            unsafe data.withUnsafeMutableBytes { bytes in
                unsafe content_fill(UInt64(seed), 0, bytes.baseAddress, bytes.count)
            }
            return data
        }
    }
}

/// The work by hand on files, and the owner of what it keeps between them.
@safe final class ByHand: @unchecked Sendable {
    // Sendable: used by one thread at a time.
    private let context: OpaquePointer

    init() throws {
        guard let context = unsafe by_hand_new() else { throw Failure("OpenSSL can't do AES-256-GCM") }
        unsafe self.context = context
    }

    deinit { unsafe by_hand_free(context) }

    func write(_ content: Data, as name: String, in folder: Folder, withFsync: Bool) throws {
        let isFine = unsafe content.withUnsafeBytes { bytes in
            unsafe by_hand_write(context, folder.descriptor, name, bytes.baseAddress, bytes.count, withFsync)
        }
        try expect(isFine, "writing by hand failed: \(errno)")
    }

    func read(_ name: String, in folder: Folder, into output: inout Data) throws {
        let isFine = unsafe output.withUnsafeMutableBytes { bytes in
            unsafe by_hand_read(context, folder.descriptor, name, bytes.baseAddress, bytes.count)
        }
        try expect(isFine, "reading by hand failed: \(errno)")
    }

    /// Another one, for another thread, that reads what this one wrote.
    func forAnotherThread() throws -> ByHand {
        let other = try ByHand()
        try expect(unsafe by_hand_read_files_of(other.context, context), "OpenSSL can't take a key")
        return other
    }

    func recode(_ name: String, in folder: Folder, to other: Folder, byteCount: Int) throws {
        let isFine = unsafe by_hand_recode(context, folder.descriptor, name, other.descriptor, byteCount)
        try expect(isFine, "encrypting anew by hand failed: \(errno)")
    }

    func syncAll(_ folder: Folder) throws {
        try expect(by_hand_sync_all(folder.descriptor), "syncfs failed: \(errno)")
    }
}
