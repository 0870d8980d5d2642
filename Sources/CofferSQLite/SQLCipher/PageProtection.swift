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
