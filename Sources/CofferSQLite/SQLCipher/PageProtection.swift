package import CofferSealing

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
