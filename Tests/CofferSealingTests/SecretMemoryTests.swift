#if os(Linux)
import Foundation
import Glibc
import MemorySearch
import Testing

@testable import CofferSealing

/// Looks for keys in all of a process's memory, in a process of its own.
@Suite("Keys in memory", .enabled(if: access("/proc/self/mem", R_OK) == 0, "no /proc/self/mem to look at"))
struct SecretMemoryTests {
    @Test("A random key is in memory once, after use too, and nowhere once its life ends")
    func randomKey() async {
        await #expect(processExitsWith: .success) {
            var key: SymmetricKey? = try SymmetricKey()
            let needle = Needle(key)
            guard needle.occurrences() == 1 else { throw Miscount(needle.occurrences(), "after it was made") }
            try SecretMemoryTests.use(key)
            guard needle.occurrences() == 1 else { throw Miscount(needle.occurrences(), "after it was used") }
            key = nil
            guard needle.occurrences() == 0 else { throw Miscount(needle.occurrences(), "after its life ended") }
        }
    }

    /// The allocator notes four words at the start of a large block that is freed alone, which is where a key is: it would
    /// overwrite the key itself. Of blocks that are freed side by side it notes that of the first alone.
    @Test("Many random keys are in memory once each, and none of them anywhere once their lives end")
    func manyKeys() async {
        await #expect(processExitsWith: .success) {
            var keys = try (0..<8).map { _ in try SymmetricKey() }
            let needles = keys.map { Needle($0) }
            for needle in needles where needle.occurrences() != 1 {
                throw Miscount(needle.occurrences(), "after they were made")
            }
            keys = []
            let left = needles.reduce(0) { $0 + $1.occurrences() }
            guard left == 0 else { throw Miscount(left, "after their lives ended") }
        }
    }

    @Test("A page of secret bytes is in memory once, and nowhere once its life ends, on every path")
    func secretBytes() async {
        await #expect(processExitsWith: .success) {
            // The last bytes of a page: in a shorter block the allocator's own notes can overwrite what is left.
            var secret: SecretBytes? = try randomSecret(byteCount: 4096)
            let needle = Needle(secret?.withBytes { Needle.hide($0) } ?? [])
            guard needle.occurrences() == 1 else { throw Miscount(needle.occurrences(), "after it was made") }
            secret = nil
            guard needle.occurrences() == 0 else { throw Miscount(needle.occurrences(), "after its life ended") }

            var refused: Needle?
            do {
                _ = try SecretBytes(byteCount: 4096) { bytes throws(CofferError) in
                    for index in bytes.indices { bytes[index] = UInt8.random(in: 0...255) }
                    let needle = Needle(Needle.hide(UnsafeRawBufferPointer(bytes)))
                    guard needle.occurrences() == 1 else { return }
                    refused = needle
                    throw CofferError(.cancelled)
                }
            } catch {}
            guard refused?.occurrences() == 0 else {
                throw Miscount(refused?.occurrences() ?? -1, "after it was refused")
            }
        }
    }

    @Test(
        "Of the pages of secrets whose lives have ended sixteen stay locked, with zeros, for the next secrets",
        .enabled(if: SecretMemoryTests.mayLock(byteCount: 1 << 20), "the system lets nobody lock so much"))
    func keptPages() async {
        await #expect(processExitsWith: .success) {
            let locked = try SecretMemoryTests.lockedKilobytes()
            func expectLocked(_ kilobytes: Int, _ when: String) throws {
                let count = try SecretMemoryTests.lockedKilobytes() - locked
                guard count == kilobytes else { throw Miscount(count / 4, when) }
            }
            func use(_ count: Int) throws {
                var secrets: [SymmetricKey] = []
                for _ in 0..<count { secrets.append(try SymmetricKey()) }
                try expectLocked(4 * max(count, 16), "while \(count) secrets live")
            }
            try use(40)
            try expectLocked(64, "after forty secrets")
            for _ in 0..<16 {
                guard SecretBytes(byteCount: 4096).withBytes({ $0.allSatisfy { $0 == 0 } }) else { exit(1) }
            }
            try use(3)
            _ = SecretBytes(byteCount: 4097)
            try expectLocked(64, "after three more, and a long one")
        }
    }

    private static func mayLock(byteCount: UInt) -> Bool {
        var limit = rlimit()
        return getrlimit(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue), &limit) == 0 && limit.rlim_cur >= byteCount
    }

    fileprivate static func lockedKilobytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmLck:") })
        return try #require(line.split(separator: " ").compactMap { Int($0) }.first)
    }

    @Test("A derived and an unwrapped key are in memory once, and nowhere once their lives end")
    func derivedKey() async {
        await #expect(processExitsWith: .success) {
            try SecretMemoryTests.onceBound {
                let master = try SymmetricKey(), attempt = UInt8.random(in: 0...255)
                var (keys, needles): ([SymmetricKey?], [Needle]) = ([], [])
                for round: UInt8 in 0..<2 {
                    let wrapped = try master.wrap(SymmetricKey())
                    for make in [
                        { try master.derivedKey(by: .hkdfExpandSHA256(info: [1, round])) },
                        { try master.derivedKey(by: .hkdfExpandSHA512(info: [1, round])) },
                        { try master.derivedKey(by: .hkdfSHA256(salt: [2, round], info: [1, round])) },
                        { try master.unwrap(wrapped) },
                        {
                            try SymmetricKey(password: "password").derivedKey(
                                by: .scrypt(log2N: 10, r: 8, p: 1, salt: [3, round, attempt]))
                        },
                        {
                            try SymmetricKey(password: "p").derivedKey(
                                by: .pbkdf2SHA512(iterations: 100_000, salt: [4, round, attempt]))
                        },
                    ] as [() throws -> SymmetricKey?] {
                        keys.append(try make())
                        needles.append(Needle(keys.last.flatMap { $0 }))
                        let count = needles.last?.occurrences() ?? 0
                        guard count == 1 else { throw Miscount(count, "after it was made") }
                    }
                }
                // At once: see above.
                keys = []
                let left = needles.reduce(0) { $0 + $1.occurrences() }
                guard left == 0 else { throw Miscount(left, "after their lives ended") }
            }
        }
    }

    /// Runs `body`, with other keys each time, until it succeeds: twenty times at most.
    ///
    /// At the first call of a function in another library the dynamic loader saves the processor's vector registers on the stack,
    /// where a key that was copied by way of them stays for a while: seen on processors with AMX, and not with LD_BIND_NOW. A copy
    /// that Coffer leaves comes every time.
    fileprivate static func onceBound(_ body: () throws -> Void) throws {
        for _ in 0..<19 {
            do { return try body() } catch is Miscount {}
        }
        try body()
    }

    @Test("A message's key is nowhere in memory once the message is sealed or opened, or refused")
    func messageKey() async {
        await #expect(processExitsWith: .success) {
            try SecretMemoryTests.onceBound {
                let key = try SymmetricKey(), salt = [UInt8](repeating: 3, count: 24)
                let label = Array("c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0".utf8)
                let needle = Needle(try key.derivedKey(by: .hkdfExpandSHA512(info: label + salt)))
                guard needle.occurrences() == 0 else { throw Miscount(needle.occurrences(), "before any message") }
                for _ in 0..<2 {
                    let header = try SecretMemoryTests.sealOne(key, salt: salt, needle)
                    try SecretMemoryTests.openOne(key, header, needle)
                    var changed = header
                    changed[55] ^= 1
                    guard try CobblestoneDecryptor(key: key, context: [], header: changed) == nil else { exit(1) }
                    guard needle.occurrences() == 0 else {
                        throw Miscount(needle.occurrences(), "after a wrong header")
                    }
                }
            }
        }
    }

    fileprivate static func sealOne(_ key: SymmetricKey, salt: [UInt8], _ needle: Needle) throws -> [UInt8] {
        func header() throws -> [UInt8] {
            var encryptor = try CobblestoneEncryptor(key: key, context: [], salt: salt)
            _ = try encryptor.seal([1, 2, 3], isLast: true)
            try expectInUse(needle)
            return encryptor.header
        }
        let result = try header()
        guard needle.occurrences() == 0 else { throw Miscount(needle.occurrences(), "after sealing") }
        return result
    }

    fileprivate static func openOne(_ key: SymmetricKey, _ header: [UInt8], _ needle: Needle) throws {
        func open() throws {
            guard var decryptor = try CobblestoneDecryptor(key: key, context: [], header: header) else { exit(1) }
            _ = try decryptor.open([UInt8](repeating: 1, count: 100), index: 0)
            try expectInUse(needle)
        }
        try open()
        guard needle.occurrences() == 0 else { throw Miscount(needle.occurrences(), "after opening") }
    }

    /// OpenSSL's context alone has the key, where an AES key schedule begins with it.
    private static func expectInUse(_ needle: Needle) throws {
        #if arch(x86_64)
        guard needle.occurrences() == 1 else { throw Miscount(needle.occurrences(), "while it is in use") }
        #endif
    }

    @Test("The search of memory finds a copy that somebody left, until it is overwritten")
    func control() async {
        await #expect(processExitsWith: .success) {
            try SecretMemoryTests.onceBound {
                let key: SymmetricKey? = try SymmetricKey()
                let needle = Needle(key)
                var copy = key?.withBytes { Array($0) } ?? []
                guard needle.occurrences() == 2 else { throw Miscount(needle.occurrences(), "with a copy") }
                copy[31] ^= 1
                guard needle.occurrences() == 1 else { throw Miscount(needle.occurrences(), "with a changed copy") }
            }
        }
    }

    fileprivate static func use(_ key: SymmetricKey?) throws {
        guard let key else { return }
        let wrapped = try key.wrap(SymmetricKey())
        _ = try key.unwrap(wrapped)
        _ = try SymmetricKey().unwrap(wrapped)
        _ = try key.authenticationCode(for: [1, 2, 3])
        _ = try key.derivedKey(by: .hkdfExpandSHA256(info: [1]))
        _ = try key == SymmetricKey()
        _ = "\(key)"
    }
}

private struct Miscount: Error {
    init(_ count: Int, _ when: String) { print("\(count) copies \(when)") }
}
#endif
