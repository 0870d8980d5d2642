internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Processes that have a store open, as far as the system tells.
///
/// A store is locked by `flock` on its directory. Linux lists such locks in `/proc/locks`, and beside each open file in
/// `/proc/PID/fdinfo`, so nobody has to try for one, which could keep somebody else from getting it.
struct LockHolders {
    struct Holder: Equatable {
        let process: Int32
        /// What the system calls it; nil if it doesn't say.
        let command: String?
    }

    private let locks: Set<Lock>

    private struct Lock: Hashable {
        let process: Int32
        let device: String
        let file: UInt64
    }

    /// The most readings of the list. While locks come and go, one reading in twenty missed a lock that was held all along.
    private static let readings = 8

    /// The locks that there are now.
    ///
    /// The system hands its list out in pieces and counts from the start for each, so that a lock is left out where others were given
    /// up in between. The list is read until it stays the same, and what any reading had counts. On a busy system that is not enough:
    /// what is said beside each open directory is complete, but only root sees it of other users' processes.
    init(
        readingList: () -> String = { (try? String(contentsOfFile: "/proc/locks", encoding: .utf8)) ?? "" },
        readingDirectories: () -> [String] = Self.locksOfOpenDirectories
    ) {
        var (seen, latest) = (Set<Lock>(), Set<Lock>?.none)
        for _ in 0..<Self.readings {
            let read = Set(readingList().split(separator: "\n").compactMap(Self.lock(of:)))
            seen.formUnion(read)
            guard read != latest else { break }
            latest = read
        }
        seen.formUnion(readingDirectories().compactMap { Self.lock(of: $0[...]) })
        locks = seen
    }

    /// The lines of locks that are held by open directories, one process after the other.
    private static func locksOfOpenDirectories() -> [String] {
        var found: [String] = []
        for process in contents(of: "/proc") where Int32(process) != nil {
            for file in contents(of: "/proc/\(process)/fd") where isDirectory("/proc/\(process)/fd/\(file)") {
                let text = (try? String(contentsOfFile: "/proc/\(process)/fdinfo/\(file)", encoding: .utf8)) ?? ""
                for line in text.split(separator: "\n") where line.hasPrefix("lock:") {
                    found.append(line.dropFirst("lock:".count).trimmingCharacters(in: .whitespaces))
                }
            }
        }
        return found
    }

    private static func contents(of folder: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    }

    private static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Such as "1: FLOCK  ADVISORY  WRITE 694 fe:00:16580615 0 EOF"; one that waits has an arrow after its number.
    private static func lock(of line: Substring) -> Lock? {
        let words = line.split(separator: " ")
        guard words.count >= 6, words[1] == "FLOCK", let process = Int32(words[4]), process > 0 else { return nil }
        guard let colon = words[5].lastIndex(of: ":"), let file = UInt64(words[5][words[5].index(after: colon)...])
        else { return nil }
        return Lock(process: process, device: String(words[5][..<colon]), file: file)
    }

    /// Those that hold a lock of the directory.
    func holders(of path: String) -> [Holder] {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return [] }
        let identity = FileIdentity(status)
        let held = locks.filter { $0.file == UInt64(status.st_ino) }.sorted { $0.process < $1.process }
        return held.compactMap { lock in
            guard lock.device == Self.device(status) || Self.has(lock.process, open: identity) else { return nil }
            let command = try? String(contentsOfFile: "/proc/\(lock.process)/comm", encoding: .utf8)
            return Holder(process: lock.process, command: command?.split(separator: "\n").first.map(String.init))
        }
    }

    /// As the list has it: major and minor number in hexadecimal.
    private static func device(_ status: stat) -> String {
        #if canImport(Glibc)
        // How the C library packs both into one number: <sys/sysmacros.h>, whose functions Swift doesn't see.
        let device = UInt64(status.st_dev)
        let major = (device >> 8) & 0xFFF | (device >> 32) & ~0xFFF
        let minor = device & 0xFF | (device >> 12) & ~0xFF
        let parts = [major, minor].map { String($0, radix: 16) }
        return parts.map { $0.count < 2 ? "0" + $0 : $0 }.joined(separator: ":")
        #else
        return ""
        #endif
    }

    /// Whether a process has that file open. Some file systems are listed under another device than files say.
    private static func has(_ process: Int32, open identity: FileIdentity) -> Bool {
        let folder = "/proc/\(process)/fd"
        return contents(of: folder).contains { FileIdentity(path: "\(folder)/\($0)") == identity }
    }
}
