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

    /// Throws `encryptionUnavailable` (501) where this system's OpenSSL has no such digest.
    package init(_ algorithm: DigestAlgorithm) throws(CofferError) {
        guard let implementation = algorithm.implementation else { throw .openSSLFailed(algorithm.name) }
        guard let context = unsafe EVP_MD_CTX_new() else { throw .openSSLFailed(algorithm.name) }
        guard unsafe EVP_DigestInit_ex2(context, implementation.pointer, nil) == 1 else {
            unsafe EVP_MD_CTX_free(context)
            throw .openSSLFailed(algorithm.name)
        }
        unsafe self.context = context
        self.algorithm = algorithm
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

    /// Nil where this system's OpenSSL has no such digest, or is set up to offer none (`fips=yes`, say).
    private init?(_ algorithm: DigestAlgorithm) {
        guard let pointer = unsafe EVP_MD_fetch(nil, algorithm.name, nil) else { return nil }
        unsafe self.pointer = pointer
    }

    deinit { unsafe EVP_MD_free(pointer) }

    fileprivate static let md5 = DigestImplementation(.md5)
    fileprivate static let sha1 = DigestImplementation(.sha1)
    fileprivate static let sha256 = DigestImplementation(.sha256)
}

extension DigestAlgorithm {
    fileprivate var implementation: DigestImplementation? {
        switch self {
        case .md5: .md5
        case .sha1: .sha1
        case .sha256: .sha256
        }
    }

    /// What OpenSSL calls it.
    fileprivate var name: String {
        switch self {
        case .md5: "MD5"
        case .sha1: "SHA1"
        case .sha256: "SHA256"
        }
    }
}

/// A digest that was set up takes any bytes without allocating: OpenSSL has no way to fail at it, and the process ends should
/// it find one, since whatever came of it would be wrong.
private func digestFailed(_ what: String) -> Never {
    fatalError(([what] + drainOpenSSLErrors()).joined(separator: ": "))
}
