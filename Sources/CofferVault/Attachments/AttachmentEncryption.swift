internal import CofferSealing

/// How the files of one generation are encrypted.
struct AttachmentEncryption: Sendable {
    let key: SymmetricKey
    /// Binds each file to its store and generation.
    let context: [UInt8]

    /// Nil when the store is not encrypted.
    init?(_ manifest: UnlockedManifest) throws(CofferError) {
        guard let key = try manifest.key(for: .attachments) else { return nil }
        self.key = key
        context = KeyLabel.subkey(
            for: "attachment", of: manifest.manifest.storeUUID, generation: manifest.manifest.generation)
    }
}
