import Foundation
import Synchronization
import Testing

@testable import CofferSealing

/// What is `Sendable` by our own word: the compiler lets threads have it one at a time, in a lock.
@Suite("Digests, ciphers and secrets that threads share")
struct SharingTests {
    private static let threadCount = 4
    private static let roundCount = 500

    @Test("Threads that take turns with a digest, a cipher and a secret get what one thread would")
    func takingTurns() throws {
        let piece = CobblestoneMessage.pattern(100)
        let digest = Lock(try StreamingDigest(.sha256))
        onThreads { _ in digest.withLock { $0.update(piece) } }
        let found = digest.withLock { $0.finalize() }
        let all = (0..<Self.threadCount * Self.roundCount).flatMap { _ in piece }
        #expect(try found == Digest.sha256(of: all))

        let key = try SymmetricKey()
        let plaintext = CobblestoneMessage.pattern(3 * 16384)
        let message = try CobblestoneMessage.seal(plaintext, key: key, context: [1])
        let header = Array(message.prefix(Cobblestone.headerByteCount))
        let decryptor = try Lock(CobblestoneDecryptor(key: key, context: [1], header: header))
        let failures = Lock(0)
        onThreads { thread in
            let chunk = thread % 3
            let opened = decryptor.withLock { open(message, chunk, &$0) }
            if opened != Array(plaintext[chunk * 16384..<(chunk + 1) * 16384]) { failures.withLock { $0 += 1 } }
        }
        let failureCount = failures.withLock { $0 }
        #expect(failureCount == 0)

        let secret = Lock(SecretBytes(byteCount: 8))
        onThreads { _ in
            secret.withLock { secret in
                secret.withMutableBytes { bytes in
                    let count = unsafe bytes.load(as: UInt64.self) + 1
                    unsafe bytes.storeBytes(of: count, as: UInt64.self)
                }
            }
        }
        let count = secret.withLock { secret in secret.withBytes { unsafe $0.load(as: UInt64.self) } }
        #expect(count == UInt64(Self.threadCount * Self.roundCount))
    }

    private func onThreads(_ body: @escaping @Sendable (Int) -> Void) {
        DispatchQueue.concurrentPerform(iterations: Self.threadCount) { thread in
            for _ in 0..<Self.roundCount { body(thread) }
        }
    }
}

/// Chunk `index` of a message of whole chunks.
private func open(_ message: [UInt8], _ index: Int, _ decryptor: inout CobblestoneDecryptor?) -> [UInt8]? {
    let storedByteCount = 16384 + ChunkCipher.tagByteCount
    let start = Cobblestone.headerByteCount + index * storedByteCount
    let sealed = Array(message[start..<start + storedByteCount])
    var opened = [UInt8](repeating: 0, count: 16384)
    let isIntact = sealed.withUnsafeBytes { sealed in
        opened.withUnsafeMutableBytes { try? decryptor?.open(sealed, index: index, into: $0) }
    }
    return isIntact == true ? opened : nil
}
