@testable import CofferSealing
@testable import CofferVault

/// The 1,024 bytes of MANIFEST, parsed and unlocked: as they come, and with a checksum that fits, as someone who can
/// write the disk makes it.
enum ManifestHarness {
    /// A manifest that `key` opens, made anew each time, since only random salts are ever written.
    private static let key = try? SymmetricKey(data: [UInt8](repeating: 7, count: 32))
    private static let valid: [UInt8] = {
        guard
            let manifest = try? UnlockedManifest.new(
                key: key, cost: .scrypt(log2N: 10, p: 1), encryptedProfile: .portableSQLCipher, attachmentNames: .sha1,
                at: 1),
            let bytes = try? manifest.manifest.bytes
        else {
            fatalError("no manifest could be made")
        }
        return bytes
    }()

    @Sendable static func run(_ input: [UInt8]) throws {
        try check(input)
        if input.count == Manifest.byteCount { try check(try withChecksum(input)) }

        // Changes of one that opens.
        var choices = Choices(input[...])
        var changed = valid
        while !choices.isEmpty {
            let offset = choices.number(below: changed.count)
            let bytes = choices.take(Int(choices.byte() % 9))
            changed.replaceSubrange(offset..<min(offset + bytes.count, changed.count), with: bytes)
            changed = Array(changed.prefix(Manifest.byteCount))
        }
        try check(changed)
        try check(try withChecksum(changed))
    }

    private static func withChecksum(_ bytes: [UInt8]) throws -> [UInt8] {
        guard bytes.count == Manifest.byteCount else { return bytes }
        var bytes = bytes
        bytes.replaceSubrange(960..<992, with: try Digest.sha256(of: Array(bytes[..<960])))
        return bytes
    }

    private static func check(_ bytes: [UInt8]) throws {
        let manifest: Manifest
        do throws(CofferError) {
            manifest = try Manifest(bytes: bytes)
        } catch {
            expect(error.code == .damaged || error.code == .unsupportedFormat, "a manifest is \(error)")
            return
        }
        expect(try manifest.bytes == bytes, "a manifest is written otherwise than it was read")
        expect(manifest.isEncrypted != manifest.slots.isEmpty, "slots without encryption, or none with it")
        do throws(CofferError) {
            let unlocked = try manifest.unlock(with: key)
            expect(manifest.isEncrypted, "a key opens what is not encrypted")
            expect(bytes[..<992] == valid[..<992], "a manifest that was changed opens")
            expect(try unlocked.key(for: .database) != nil, "it opens without a key for the database")
        } catch {
            let codes: [CofferError.Code] = manifest.isEncrypted ? [.wrongKey, .damaged] : [.notEncrypted]
            expect(codes.contains(error.code), "unlocking is \(error)")
            expect(bytes != valid, "a valid manifest with its key is \(error)")
        }
        do throws(CofferError) {
            _ = try manifest.unlock(with: nil)
            expect(!manifest.isEncrypted, "it opens without a key")
        } catch {
            expect(manifest.isEncrypted && error.code == .keyRequired, "without a key it is \(error)")
        }
    }
}
