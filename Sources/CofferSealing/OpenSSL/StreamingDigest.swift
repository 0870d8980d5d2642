internal import COpenSSL

/// A digest that is fed in pieces, and the owner of its OpenSSL context.
///
/// Making one allocates; ``reset()`` and ``finalize()`` of the same one don't, so a hot path keeps one and reuses it.
/// For one digest at a time, by one thread at a time.
@safe package struct StreamingDigest: ~Copyable, @unchecked Sendable {
    // Sendable: nobody else has the pointer, and every use of it is mutating, so that the compiler lets one thread at a time
    // use it (test: "Threads that take turns with a digest, a cipher and a secret get what one thread would").
    private let context: OpaquePointer
    package let algorithm: DigestAlgorithm

    package init(_ algorithm: DigestAlgorithm) {
        guard let context = unsafe EVP_MD_CTX_new() else { digestFailed("no memory for a digest") }
        unsafe self.context = context
        self.algorithm = algorithm
        guard unsafe EVP_DigestInit_ex2(context, algorithm.implementation.pointer, nil) == 1 else {
            digestFailed("OpenSSL can't start \(algorithm)")
        }
    }

    deinit { unsafe EVP_MD_CTX_free(context) }

    /// Takes the next bytes of the message.
    package mutating func update(_ bytes: RawSpan) {
        let result = unsafe bytes.withUnsafeBytes { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
        guard result == 1 else { digestFailed("OpenSSL can't continue \(algorithm)") }
    }

    /// Takes the next bytes of the message.
    package mutating func update(_ bytes: Span<UInt8>) { unsafe update(bytes.bytes) }

    /// Takes the next bytes of the message.
    package mutating func update(_ bytes: [UInt8]) { update(bytes.span) }

    /// Forgets what was taken, and starts over.
    package mutating func reset() {
        guard unsafe EVP_DigestInit_ex2(context, nil, nil) == 1 else {
            digestFailed("OpenSSL can't restart \(algorithm)")
        }
    }

    /// Writes the digest into `output`, which has exactly ``DigestAlgorithm/byteCount`` bytes, and starts over.
    package mutating func finalize(into output: UnsafeMutableRawBufferPointer) {
        precondition(output.count == algorithm.byteCount, "the digest doesn't fit")
        var written: UInt32 = 0
        guard
            unsafe EVP_DigestFinal_ex(context, output.bindMemory(to: UInt8.self).baseAddress, &written) == 1,
            Int(written) == output.count
        else { digestFailed("OpenSSL can't finish \(algorithm)") }
        reset()
    }

    /// Returns the digest, and starts over.
    package mutating func finalize() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: algorithm.byteCount)
        unsafe digest.withUnsafeMutableBytes { unsafe finalize(into: $0) }
        return digest
    }

    /// Returns the SHA-256 without allocating, and starts over.
    package mutating func finalizeSHA256() -> SHA256Value {
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        unsafe withUnsafeMutableBytes(of: &words) { unsafe finalize(into: $0) }
        return SHA256Value(
            UInt64(bigEndian: words.0), UInt64(bigEndian: words.1), UInt64(bigEndian: words.2),
            UInt64(bigEndian: words.3))
    }
}

/// An algorithm's implementation, looked up once per process: looking it up costs more than a short digest.
@safe final class DigestImplementation: @unchecked Sendable {
    // Sendable: OpenSSL's EVP_MD is immutable once fetched, and reference counted (test: "Threads that take turns with a digest, a cipher and a secret get what one thread would").
    fileprivate let pointer: OpaquePointer

    private init(_ name: String) {
        guard let pointer = unsafe EVP_MD_fetch(nil, name, nil) else { digestFailed("OpenSSL has no \(name)") }
        unsafe self.pointer = pointer
    }

    deinit { unsafe EVP_MD_free(pointer) }

    fileprivate static let md5 = DigestImplementation("MD5")
    fileprivate static let sha1 = DigestImplementation("SHA1")
    fileprivate static let sha256 = DigestImplementation("SHA256")
}

extension DigestAlgorithm {
    fileprivate var implementation: DigestImplementation {
        switch self {
        case .md5: .md5
        case .sha1: .sha1
        case .sha256: .sha256
        }
    }
}

/// OpenSSL fails at a digest only when it is set up without its digests at all, or when there is no memory.
private func digestFailed(_ what: String) -> Never {
    fatalError(([what] + drainOpenSSLErrors()).joined(separator: ": "))
}
