package import CofferSealing
package import CofferVault

/// What the pages of a database file are written under, as its store's MANIFEST says.
package enum DatabaseProtection: Sendable {
    /// Nothing: everybody can read and change them.
    case none
    /// SQLCipher's encryption, in the portable profile.
    case sqlCipher(SymmetricKey)
    /// AES-256-GCM a page and frame, bound to its store and generation.
    case sealed(SymmetricKey, SealedPageBinding)

    package init(of manifest: UnlockedManifest) throws(CofferError) {
        guard let key = try manifest.databaseKey() else {
            self = .none
            return
        }
        let said = manifest.manifest
        switch said.databaseProfile {
        case .sqlite, .portableSQLCipher: self = .sqlCipher(key)
        case .sealedPages:
            self = .sealed(
                key,
                SealedPageBinding(
                    storeUUID: said.storeUUID.bytes, generation: said.generation, generationTag: said.generationTag))
        }
    }

    package var isEncrypted: Bool {
        switch self {
        case .none: false
        case .sqlCipher, .sealed: true
        }
    }
}
