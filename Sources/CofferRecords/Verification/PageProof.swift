internal import CofferSealing

/// Tells whether a page is one that was written in its place: by SQLCipher's MAC, or by opening a sealed one.
struct PageProof: ~Copyable {
    private let authenticator: PageAuthenticator?
    private var codec: SealedPageCodec?

    private init(_ authenticator: consuming PageAuthenticator?, _ codec: consuming SealedPageCodec?) {
        self.authenticator = authenticator
        self.codec = codec
    }

    /// - Parameter salt: what the file begins with.
    /// - Returns: nil where nothing can be proven: pages aren't encrypted, or the salt of SQLCipher's is not there.
    static func of(
        _ protection: DatabaseProtection, salt: () throws(CofferError) -> [UInt8]?
    ) throws(CofferError) -> PageProof? {
        switch protection {
        case .none: return nil
        case .sqlCipher(let key):
            guard let salt = try salt(), salt.count == PageAuthenticator.saltByteCount else { return nil }
            return PageProof(try PageAuthenticator(key: key, salt: salt), nil)
        case .sealed(let key, let binding): return PageProof(nil, try SealedPageCodec(key: key, binding: binding))
        }
    }

    /// Whether `page`, which is 4096 bytes, was written as page `number` of the file, counted from 1.
    mutating func proves(_ page: borrowing RawSpan, number: UInt32) throws(CofferError) -> Bool {
        try unsafe page.withUnsafeBytes { (page) throws(CofferError) in try unsafe proves(page, number: number) }
    }

    mutating func proves(_ page: UnsafeRawBufferPointer, number: UInt32) throws(CofferError) -> Bool {
        if codec == nil { return try unsafe authenticator?.isAuthentic(page, number: number) == true }
        guard page.count == SealedPageCodec.pageByteCount else { return false }
        guard let opened = try unsafe codec?.openPage(number, Array(page)) else { return false }
        return number != 1 || Self.isFirstPage(opened)
    }

    /// Whether the opened page 1 of a file says that its pages are as sealed ones are. sqlite.org/fileformat2.html, section 1.3.
    static func isFirstPage(_ page: [UInt8]) -> Bool {
        page.starts(with: Array("SQLite format 3\0".utf8)) && page.bigEndian(2, at: 16) == SealedPageCodec.pageByteCount
            && Int(page[20]) == SealedPageCodec.pageByteCount - SealedPageCodec.usableByteCount
    }
}
