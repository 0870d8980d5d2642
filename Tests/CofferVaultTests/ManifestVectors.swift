import CofferSealing
import CofferVault
import Foundation
import TestSupport
import Testing

/// One file of Vectors/manifest, which an independent implementation made.
struct ManifestVector: Decodable {
    struct Key: Decodable {
        let password: String?
        let bytes: String?
    }

    struct Opened: Decodable {
        let storeUUID: String, generation: UInt64, sequence: UInt64, generationName: String, keyedNames: Bool
        let slots: [String], openedSlot: String?, subkeys: [String: String]?
    }

    let comment: String
    let manifest: [String]
    let key: Key?
    let result: String
    let status: Int?
    let opened: Opened?

    var bytes: [UInt8] {
        get throws { try manifest.flatMap { try #require([UInt8](hex: $0)) } }
    }

    var symmetricKey: SymmetricKey? {
        get throws {
            guard let key else { return nil }
            if let password = key.password { return SymmetricKey(password: password) }
            return try SymmetricKey(data: try #require([UInt8](hex: key.bytes ?? "")))
        }
    }

    /// What comes of reading and unlocking it.
    func unlock() throws -> UnlockedManifest {
        try Manifest(bytes: bytes).unlock(with: symmetricKey)
    }

    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Vectors/manifest")

    static let names: [String] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
    }()

    init(named name: String) throws {
        let data = try Data(contentsOf: Self.folder.appendingPathComponent(name + ".json"))
        self = try JSONDecoder().decode(Self.self, from: data)
    }
}

@Suite("Manifests made by another implementation")
struct ManifestVectorTests {
    @Test("Manifests made by another implementation are all there")
    func count() {
        #expect(ManifestVector.names.count == 110)
    }

    @Test(
        "Manifests made by another implementation open, or are refused, as the vector says",
        arguments: ManifestVector.names)
    func vector(name: String) throws {
        let vector = try ManifestVector(named: name)
        guard let opened = vector.opened else {
            let error = #expect(throws: CofferError.self) { try vector.unlock() }
            #expect(error?.code.description == vector.result)
            #expect(error?.status == vector.status)
            // Only an authentication code needs the key to be told from another.
            if vector.result == "damaged", !name.hasPrefix("damaged-code") {
                #expect(throws: CofferError(.damaged)) { try Manifest(bytes: vector.bytes) }
            }
            return
        }
        let unlocked = try vector.unlock()
        let manifest = unlocked.manifest
        #expect(vector.result == "opens")
        #expect(try manifest.bytes == vector.bytes)
        #expect(Array(manifest.storeUUID.bytes).hex == opened.storeUUID)
        #expect(manifest.generation == opened.generation)
        #expect(manifest.sequence == opened.sequence)
        #expect(manifest.generationName == opened.generationName)
        #expect(manifest.isEncrypted == (vector.key != nil))
        #expect(manifest.attachmentNames == (opened.keyedNames ? .keyed : .sha1))
        #expect(manifest.slots.map(\.id.description) == opened.slots)
        #expect(unlocked.openedSlot?.description == opened.openedSlot)
        let isSealed = name == "valid-sealed-pages"
        let profile: Manifest.DatabaseProfile =
            if isSealed { .sealedPages } else { vector.key == nil ? .sqlite : .portableSQLCipher }
        #expect(manifest.databaseProfile == profile)
        #expect(opened.subkeys?.count == (vector.key == nil ? nil : 4))
        for (purpose, subkey) in opened.subkeys ?? [:] {
            let purpose = try #require(UnlockedManifest.KeyPurpose(rawValue: purpose))
            #expect(try unlocked.key(for: purpose)?.withBytes { Array($0).hex } == subkey)
        }
        let databaseKey = try unlocked.databaseKey()?.withBytes { Array($0).hex }
        #expect(databaseKey == opened.subkeys?[isSealed ? "pages" : "database"])
    }

    @Test("Manifests made by another implementation are told apart by name: what is damaged is never a wrong key")
    func namesAreResults() throws {
        for name in ManifestVector.names {
            let result = try ManifestVector(named: name).result
            #expect(name.hasPrefix("damaged-") == (result == "damaged"), "\(name)")
            #expect(name.hasPrefix("wrong-key-") == (result == "wrongKey"), "\(name)")
            #expect(name.hasPrefix("unsupported-") == (result == "unsupportedFormat"), "\(name)")
        }
    }
}
