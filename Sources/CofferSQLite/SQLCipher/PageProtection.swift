package import CofferSealing
internal import CSQLCipher

/// What the pages of a database file are written under.
package enum PageProtection: Sendable {
    /// Nothing: everybody can read them.
    case none
    /// SQLCipher's encryption.
    case sqlCipher(SymmetricKey, Connection.PageProfile)
    /// AES-256-GCM a page, in a file that Coffer alone reads: see FORMAT.md, "Sealed pages".
    case sealed(SealedPages)
}

extension SymmetricKey {
    /// The key as SQLCipher takes a raw one: `x'` and 64 lower-case hex digits and `'`, in memory that is wiped.
    func hexSpecification() -> SecretBytes {
        let digits: StaticString = "0123456789abcdef"
        return unsafe SecretBytes(byteCount: 67, lifetime: .momentary) { text in
            unsafe withBytes { key in
                precondition(key.count == 32, "only a derived key opens a database file")
                unsafe text[0] = UInt8(ascii: "x")
                unsafe text[1] = UInt8(ascii: "'")
                for index in 0..<32 {
                    unsafe text[2 + 2 * index] = digits.utf8Start[Int(key[index] >> 4)]
                    unsafe text[3 + 2 * index] = digits.utf8Start[Int(key[index] & 15)]
                }
                unsafe text[66] = UInt8(ascii: "'")
            }
        }
    }
}

/// The sealed pages of one database file: their key, and the cache of opened ones that all its connections share.
///
/// For the path that it was made with, and for as long as it lives; connections keep it alive. Several for the same file, key
/// and binding are one underneath, as its connections have to share what they know of the log.
@safe package final class SealedPages: @unchecked Sendable {
    // Sendable: the C functions lock what they change (test: "Threads that read and write one sealed file see whole commits").
    private let pages: OpaquePointer

    /// The path of the database file.
    package let path: String
    /// What errors say that they happened to.
    package let subject: String

    /// Limits the cache to `cacheByteCount` bytes. Memory is taken as pages are read, not at once; 0 keeps none.
    ///
    /// - Throws: `encryptionUnavailable` (501) when there is no library to load, `invalidArgument` (400) for a password,
    ///   `busy` (503) when connections have the same file open under another key, `ioFailed` (500).
    package convenience init(
        path: String, subject: String, key: SymmetricKey, binding: SealedPageBinding, cacheByteCount: Int
    ) throws(CofferError) {
        try self.init(
            path: path, subject: subject, key: key, binding: binding, cacheByteCount: cacheByteCount, beneath: nil)
    }

    /// - Parameter beneath: the VFS that has the bytes; nil for the system's files.
    init(
        path: String, subject: String, key: SymmetricKey, binding: SealedPageBinding, cacheByteCount: Int,
        beneath: String?
    ) throws(CofferError) {
        try Library.loadCode()
        guard !key.isPassword else {
            throw CofferError(.invalidArgument, of: subject, "pages are sealed under 32 bytes")
        }
        var pages: OpaquePointer?
        let code = unsafe key.withBytes { key in
            unsafe sealed_pages_open(
                path, key.bindMemory(to: UInt8.self).baseAddress, binding.bytes, max(0, cacheByteCount), beneath, &pages
            )
        }
        guard code == Int32(SQLCIPHER_OK), let pages = unsafe pages else {
            throw DatabaseHandle(subject: subject).error(code)
        }
        unsafe self.pages = pages
        self.path = path
        self.subject = subject
    }

    deinit { unsafe sealed_pages_release(pages) }

    /// Limits the cache to `byteCount` bytes; what is more than that is wiped and given back at once.
    package func setCache(byteCount: Int) { unsafe sealed_pages_set_cache(pages, max(0, byteCount)) }

    /// The bytes that the cache takes now.
    package var cachedByteCount: Int { unsafe Int(sealed_pages_cached(pages)) }

    /// Makes an empty database of the existing file, which must have no bytes. Doesn't sync it.
    ///
    /// A new sealed file begins with this, since SQLite 3.15 can't be told the reserve of an attached one.
    package func writeEmptyDatabase() throws(CofferError) {
        let code = unsafe sealed_pages_write_empty(pages)
        guard code == Int32(SQLCIPHER_OK) else { throw DatabaseHandle(subject: subject).error(code) }
    }

    /// Whether the connection's file has these pages, and not those of another that was made for its path since.
    func areOf(_ handle: DatabaseHandle) -> Bool { unsafe sealed_pages_are_of(pages, handle.pointer) != 0 }
}

/// What tells SQLite more of a file than its path: RFC 3986, section 2.1, and sqlite.org/uri.html.
enum DatabaseURI {
    /// - Parameters:
    ///   - vfs: what reads and writes the file; nil for the VFS that is named at opening, or the one of the connection.
    ///   - isImmutable: whether nothing changes the file.
    static func of(_ path: String, vfs: String? = nil, isImmutable: Bool = false) -> String {
        let hex = Array("0123456789ABCDEF".utf8)
        var uri = Array("file:".utf8)
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
                UInt8(ascii: "_"):
                uri.append(byte)
            default:
                uri += [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
            }
        }
        let parameters = (vfs.map { ["vfs=" + $0] } ?? []) + (isImmutable ? ["immutable=1"] : [])
        let query = parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&")
        return String(decoding: uri, as: UTF8.self) + query
    }
}

extension PageProtection {
    /// The VFS that reads and writes a file that is protected so.
    var vfs: String? {
        switch self {
        case .none, .sqlCipher: unsafe sealed_vfs_of_others().map { unsafe String(cString: $0) }
        case .sealed: SEALED_VFS
        }
    }

    var isSQLCipher: Bool { if case .sqlCipher = self { true } else { false } }
    var isSealed: Bool { if case .sealed = self { true } else { false } }
}
