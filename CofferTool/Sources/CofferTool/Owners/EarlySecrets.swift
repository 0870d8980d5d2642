internal import Coffer
@_spi(Tool) internal import CofferKeys
internal import Synchronization

/// Keys and passwords that only root may be able to read, read before the process became another user's. They never leave it:
/// not as an argument, not in a file.
enum EarlySecrets {
    private static let keys = Mutex<[KeySource: KeyReading]>([:])
    private static let texts = Mutex<[KeySource: String]>([:])

    /// Reads a key, unless its source is one that is open already, or a person.
    static func takeKey(_ source: KeySource) throws(Failure) {
        guard source.needsRights, key(from: source) == nil else { return }
        let key = try source.reading(for: "key")
        keys.withLock { $0[source.early] = key }
    }

    /// The same for a secret that is not a key of a store.
    static func takeText(_ source: KeySource) throws(Failure) {
        guard source.needsRights, text(from: source) == nil else { return }
        let text = try source.text(for: "secret", "secret")
        texts.withLock { $0[source] = text }
    }

    static func key(from source: KeySource) -> KeyReading? { keys.withLock { $0[source.early] } }

    static func text(from source: KeySource) -> String? { texts.withLock { $0[source] } }
}

extension KeySource {
    /// What it was read as: whichever store is meant, since the process is about one, and for what only where a command may
    /// answer otherwise then.
    fileprivate var early: KeySource { asked(for: isCommand ? request.purpose : .old) }
}
