public import CofferSealing
internal import CofferVault

/// What is left of a store as it was under an earlier key, or of a change of the key that was cut short: a folder in the
/// store's directory that is not part of the store any more.
public struct OldGeneration: Sendable {
    /// The folder.
    public let path: String
    /// Whether something in it may be read without any key, since it was not encrypted, or nobody can tell. Otherwise only
    /// who has its key can read it.
    ///
    /// An encrypted store with such a folder is opened for reading only, as long as that can't be removed.
    public let mayBeReadable: Bool
    /// Why it couldn't be removed. Nil while somebody still reads there, or where nobody has tried yet.
    public let failure: CofferError?

    init(_ generation: LeftGeneration) {
        path = generation.path
        mayBeReadable = generation.mayBeReadable
        failure = generation.failure
    }
}

extension Database {
    /// What is left in the store's directory of earlier generations of the store: normally nothing.
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

extension Storage {
    var oldGenerations: [OldGeneration] {
        get throws(CofferError) { try store.oldGenerations(beside: manifest.manifest).map(OldGeneration.init) }
    }
}
