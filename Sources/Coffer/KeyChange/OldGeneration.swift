internal import CofferModel
public import CofferSealing
internal import CofferVault

/// The remains of a store under an earlier key, or of a change of the key that was cut short: a folder in the
/// store's directory that is not part of the store any more.
public struct OldGeneration: Sendable, Codable {
    /// The folder.
    public let path: String
    /// How long the files in it are together, in bytes.
    public let byteCount: Int
    /// Whether something in it may be read without any key, since it was not encrypted, or nobody can tell. Otherwise only
    /// somebody with its key can read it.
    ///
    /// An encrypted store with such a folder is opened for reading only, as long as that can't be removed.
    public let mayBeReadable: Bool
    /// Why it couldn't be removed. Nil while somebody still reads there, or where nobody has tried yet.
    public let failure: CofferError?

    init(_ generation: LeftGeneration) {
        path = generation.path
        byteCount = generation.byteCount
        mayBeReadable = generation.mayBeReadable
        failure = generation.failure
    }
}

extension Database {
    /// The remains of earlier generations in the store's directory: normally none exist.
    ///
    /// Each opening for writing removes what can be removed, and opens all the same where something can't be, unless that
    /// ``OldGeneration/mayBeReadable`` and the store is encrypted. For a database that was opened for reading it is what
    /// the next opening for writing will find.
    ///
    /// - Throws: `ioFailed` (500) when the directory can't be listed; `closed` (500).
    public var oldGenerations: [OldGeneration] {
        get throws(CofferError) { try storage.oldGenerations }
    }
}

extension Manager {
    /// The remains of earlier generations of a store that need not be open: see ``Database/oldGenerations``. Needs no
    /// key, and removes nothing.
    ///
    /// Where something is there, the store is locked for reading while it is looked at, so that a change of the key that is
    /// under way is not mistaken for one that was cut short.
    ///
    /// - Throws: `invalidDatabaseName` (400); `notOwner` (403); `databaseNotFound` and `notAStore` (404); `damaged` and
    ///   `ioFailed` (500); `unsupportedFormat` (501); `busy` (503) when something is there and another process has the store
    ///   open for writing.
    public func oldGenerations(ofDatabaseNamed name: String) throws(CofferError) -> [OldGeneration] {
        let name = try DatabaseName(name)
        let path = storePath(name)
        if let identity = try? StoreIdentity(path: path), let database = openDatabase(identity, name) {
            return try database.oldGenerations
        }
        do throws(CofferError) {
            let manifest = try Manifest.read(path: path, fileSystem: fileSystem)
            guard try manifest.hasOtherGenerations(inStoreAt: path, fileSystem: fileSystem) else { return [] }
            let store = try LockedStore.open(
                path: path, access: .readOnly, otherOwners: otherOwners, fileSystem: fileSystem)
            defer { store.close() }
            return try store.oldGenerations(beside: store.readManifest()).map(OldGeneration.init)
        } catch {
            throw error.about(Self.subject(name))
        }
    }
}

extension Storage {
    var oldGenerations: [OldGeneration] {
        get throws(CofferError) { try store.oldGenerations(beside: manifest.manifest).map(OldGeneration.init) }
    }
}
