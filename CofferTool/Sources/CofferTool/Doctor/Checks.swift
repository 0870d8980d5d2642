internal import Coffer
internal import Foundation
internal import CofferTesting

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// What can be seen without making a store.
enum SystemChecks {
    static func system() -> Finding {
        var name = utsname()
        guard unsafe uname(&name) == 0 else { return .note("system", "unknown") }
        func text(_ field: some BitwiseCopyable) -> String {
            unsafe withUnsafeBytes(of: field) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
        }
        return .ok("system", "\(text(name.sysname)) \(text(name.release)) \(text(name.machine))")
    }

    /// The libraries that stores are kept with, and whether temporary data stays in memory.
    static func libraries() -> [Finding] {
        do throws(CofferError) {
            let libraries = try LoadedLibraries()
            let sqlite = "SQLite \(libraries.sqliteVersion)"
            guard let cipher = libraries.cipherVersion else {
                return [.problem("SQLCipher", .noEncryption("the loaded library is \(sqlite), not SQLCipher"))]
            }
            let memory: Finding =
                libraries.keepsTemporaryDataInMemory
                ? .ok("temporary data", "stays in memory")
                : .problem("temporary data", .noEncryption("this SQLCipher puts it into readable files"))
            return [
                .ok("SQLCipher", "\(cipher), with \(sqlite)"), .ok("OpenSSL", libraries.openSSLVersion), memory,
                otherSQLite(),
            ]
        } catch {
            return [.problem("SQLCipher", Failure(error))]
        }
    }

    /// Another SQLite in this process, such as one that is loaded into every process. Coffer keeps itself apart from it.
    private static func otherSQLite() -> Finding {
        // Only Linux has this file.
        let maps = (try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8)) ?? ""
        let paths = Set(maps.split(separator: "\n").compactMap { $0.split(separator: " ").last }.map(String.init))
        let others = paths.filter { $0.split(separator: "/").last?.hasPrefix("libsqlite3") == true }.sorted()
        guard !others.isEmpty else { return .ok("other SQLite", "none in this process") }
        return .note("other SQLite", "\(others.joined(separator: ", ")), which is kept apart")
    }

    /// What a crash of this process prints: Swift's backtracer, if it is on, shows registers and memory.
    static func crashReports() -> Finding {
        signal(SIGSEGV, SIG_DFL) == nil
            ? .ok("crash reports", "off: a crash prints neither registers nor memory")
            : .note("crash reports", "a crash handler runs in this process, and may print memory")
    }

    /// How much memory may be kept out of swap, and whether a crash writes memory to a file.
    static func memory() -> [Finding] {
        var findings: [Finding] = []
        if let limit = limit(.memoryLock) {
            let text = limit == .max ? "without limit" : "up to \(limit >> 10) KiB"
            findings.append(
                limit >= 65_536
                    ? .ok("locked memory", text) : .note("locked memory", "\(text): keys may be written to swap"))
        }
        if let limit = limit(.coreFile) {
            findings.append(
                limit == 0 ? .ok("core dumps", "none") : .note("core dumps", "a crash may write keys into a core dump"))
        }
        return findings
    }

    private enum Limit { case memoryLock, coreFile }

    private static func limit(_ kind: Limit) -> UInt64? {
        var limit = rlimit()
        #if canImport(Glibc)
        // RLIMIT_MEMLOCK is 8 on Linux; the Glibc module leaves it out.
        let number = kind == .memoryLock ? 8 : RLIMIT_CORE.rawValue
        guard unsafe getrlimit(__rlimit_resource_t(number), &limit) == 0 else { return nil }
        #else
        guard unsafe getrlimit(kind == .memoryLock ? RLIMIT_MEMLOCK : RLIMIT_CORE, &limit) == 0 else { return nil }
        #endif
        // RLIM_INFINITY, which is one of two numbers: that, or all bits.
        return limit.rlim_cur >= UInt64(Int64.max) ? .max : UInt64(limit.rlim_cur)
    }
}

extension Failure {
    static func noEncryption(_ message: String) -> Failure {
        Failure(
            message: message, hint: hint(for: .encryptionUnavailable), code: "encryptionUnavailable", status: 501,
            exit: .encryptionUnavailable)
    }
}

/// What is seen by making stores in a folder of their own, which is removed.
final class StoreChecks {
    private let folder: String
    private let manager: Manager
    private let newKey = Result { () throws(CofferError) in try SymmetricKey() }
    private var key: SymmetricKey { get throws(CofferError) { try newKey.get() } }
    /// Nowhere else, so that finding it means that it can be read.
    private let marker = "doctor's marker \(UUID())"

    /// The storage engines that are looked at.
    private let types: [StorageType]

    /// Makes the folder in `parent`.
    init(in parent: String, _ types: [StorageType]) throws {
        self.types = types
        var template = Array((parent + "/.coffer-doctor-" + String(repeating: "X", count: 6)).utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw Failure.system(errno, parent) }
        folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        manager = try Manager(directory: URL(filePath: folder, directoryHint: .isDirectory))
    }

    deinit {
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// All of them, by name, in their order.
    var all: [(name: String, check: () throws -> Finding)] {
        types.map { type in (Self.name(type), { [self] in try encryption(type) }) } + [
            ("password", password), ("replacing", replacement), ("disk", space), ("fsync", synchronization),
        ]
    }

    /// What the check of an engine's encryption is called.
    private static func name(_ type: StorageType) -> String { type == .sealed ? "sealed pages" : "encryption" }

    /// Makes a store of that engine, looks for its content on the disk, and tries another key.
    private func encryption(_ type: StorageType) throws -> Finding {
        let name = Self.name(type)
        let store = Self.store(type)
        let database = try open(store, try key, creating: type)
        try save(in: database)
        // The log is searched too, before closing empties it.
        var found = try leaks()
        try database.close()
        found += try leaks()
        guard found.isEmpty else {
            return .problem(
                name, .noEncryption("the content of an encrypted store can be read: \(found.joined(separator: ", "))"))
        }
        do {
            try open(store, try SymmetricKey()).close()
            return .problem(name, .noEncryption("another key opened an encrypted store"))
        } catch let error as CofferError where error.code == .wrongKey {}
        let again = try open(store, try key)
        defer { try? again.close() }
        guard try again["doctor"]?.currentRevision?.attachment(named: "marker")?.content == Data(marker.utf8) else {
            return .problem(name, .noEncryption("a document saved in an encrypted store is missing"))
        }
        return .ok(name, "works: nothing on the disk is readable, and a wrong key is refused (401)")
    }

    private static func store(_ type: StorageType) -> String { type == .sealed ? "sealed" : "encrypted" }

    /// Puts a store in the place of another, which takes a file system that exchanges two names in one step.
    private func replacement() throws -> Finding {
        let name = "replacing"
        let database = try open(Self.store(types[0]), try key)
        defer { try? database.close() }
        let copy = URL(filePath: folder, directoryHint: .isDirectory).appending(path: "copy.coffer")
        try database.backup(to: copy, encryptionKey: try key)
        do throws(CofferError) {
            for _ in 0..<2 {
                try manager.replaceDatabase(named: "replaced", withDatabaseAt: copy, encryptionKey: try key)
            }
        } catch {
            guard error.code == .unsupportedFormat else { throw error }
            return .note(name, "the file system can't exchange two names, so replaceDatabase fails (501)")
        }
        return .ok(name, "works: two stores are exchanged in one step")
    }

    /// How long a password takes.
    private func password() throws -> Finding {
        let key = SymmetricKey(password: marker)
        try open("password", key, creating: types[0]).close()
        let clock = ContinuousClock()
        let start = clock.now
        try open("password", key).close()
        let milliseconds = Int((clock.now - start) / .milliseconds(1))
        let kind = try manager.storeInfo(named: "password").keySlots.first?.kind.text ?? "password"
        let text = "\(milliseconds) ms to open a store (\(kind))"
        return milliseconds > 3_000 ? .note("password", text + ": slow") : .ok("password", text)
    }

    /// How much room there is.
    private func space() throws(Failure) -> Finding {
        var status = statvfs()
        guard unsafe statvfs(folder, &status) == 0 else { throw Failure.system(errno, folder) }
        let free = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        let text = "\(free >> 20) MiB free"
        guard free < 64 << 20 else { return .ok("disk", text) }
        return .note("disk", text + ": a change of keys needs as much as the store takes")
    }

    /// How long the disk takes to keep what is written: the middle of some tries.
    private func synchronization() throws(Failure) -> Finding {
        let path = folder + "/sync"
        let descriptor = NewFile.open(path)
        guard descriptor >= 0 else { throw Failure.system(errno, path) }
        defer { close(descriptor) }
        let clock = ContinuousClock()
        var times: [Duration] = []
        let block = [UInt8](repeating: 0, count: 4096)
        for _ in 0..<9 {
            try Console.write(block, to: descriptor, named: path)
            let start = clock.now
            guard fsync(descriptor) == 0 else { throw Failure.system(errno, path) }
            times.append(clock.now - start)
        }
        return .ok("fsync", "\(Int(times.sorted()[4] / .microseconds(1))) µs")
    }

    /// - Parameter type: the engine of a store that is made; nil for one that is there.
    private func open(_ name: String, _ key: SymmetricKey, creating type: StorageType? = nil) throws -> Database {
        var options = DatabaseOptions()
        options.create = type != nil
        options.storageType = type
        options.encryptionKey = key
        return try manager.openDatabase(named: name, options: options)
    }

    private func save(in database: Database) throws {
        let draft = try database.document(withID: "doctor").newRevision()
        draft["marker"] = marker
        draft.setAttachment(named: "marker", contentType: "text/plain", content: Data(marker.utf8))
        try draft.save()
    }

    private func leaks() throws(CofferError) -> [String] {
        try LeakScan(for: [marker]).search(URL(filePath: folder, directoryHint: .isDirectory)).leaks.map(\.path)
    }
}
