internal import Coffer
internal import Foundation

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
