internal import CSQLCipher

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
