import CofferSealing
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Counts what is slow about passwords: the derivations by scrypt that the calling thread makes.
///
/// The whole test program calls the function below instead of OpenSSL's, which it passes every call on to.
enum Derivations {
    fileprivate static let counts = Lock<[UInt: Int]>([:])
    fileprivate static let meanwhile = Lock<[UInt: @Sendable () -> Void]>([:])

    #if canImport(Glibc)
    fileprivate static var thread: UInt { UInt(pthread_self()) }
    #else
    fileprivate static var thread: UInt { UInt(bitPattern: pthread_self()) }
    #endif

    /// How many derivations `body` makes on this thread.
    static func count(during body: () throws -> Void) rethrows -> Int {
        let before = counts.withLock { $0[thread] ?? 0 }
        try body()
        return counts.withLock { $0[thread] ?? 0 } - before
    }

    /// Runs `work` in the middle of each derivation that `body` makes on this thread.
    static func interrupt(with work: @escaping @Sendable () -> Void, during body: () throws -> Void) rethrows {
        meanwhile.withLock { $0[thread] = work }
        defer { meanwhile.withLock { $0[thread] = nil } }
        try body()
    }
}

private typealias Scrypt =
    @convention(c) (
        UnsafePointer<CChar>?, Int, UnsafePointer<UInt8>?, Int, UInt64, UInt64, UInt64, UInt64,
        UnsafeMutablePointer<UInt8>?, Int
    ) -> Int32

/// The next function of that name: RTLD_NEXT.
private nonisolated(unsafe) let original = dlsym(UnsafeMutableRawPointer(bitPattern: -1), "EVP_PBE_scrypt")

@_cdecl("EVP_PBE_scrypt")
func countedScrypt(
    password: UnsafePointer<CChar>?, passwordCount: Int, salt: UnsafePointer<UInt8>?, saltCount: Int, n: UInt64,
    r: UInt64, p: UInt64, memory: UInt64, key: UnsafeMutablePointer<UInt8>?, keyCount: Int
) -> Int32 {
    let thread = Derivations.thread
    Derivations.counts.withLock { $0[thread, default: 0] += 1 }
    Derivations.meanwhile.withLock { $0[thread] }?()
    guard let original else { return 0 }
    return unsafeBitCast(original, to: Scrypt.self)(
        password, passwordCount, salt, saltCount, n, r, p, memory, key, keyCount)
}
