internal import Dispatch

/// The keys that a password was stretched to, for as long as whoever made the password's key asked for.
///
/// Each is a key like any other: in memory that is locked, and overwritten as it goes. That happens when its time is over
/// even if nobody asks any more. Safe from any thread.
final class KeptDerivations: Sendable {
    private struct Entry {
        let number: Int
        let derivation: KeyDerivation
        let key: SymmetricKey
    }

    private struct State {
        var entries: [Entry] = []
        var lastNumber = 0
    }

    /// How many are kept at once, the newest.
    static let limit = 16

    private let duration: Duration
    private let state = Lock(State())

    init(for duration: Duration) { self.duration = duration }

    /// What `derivation` led to, if that is still kept.
    func key(by derivation: KeyDerivation) -> SymmetricKey? {
        state.withLock { state in state.entries.first { $0.derivation == derivation }?.key }
    }

    /// Keeps what `derivation` led to.
    func keep(_ key: SymmetricKey, by derivation: KeyDerivation) {
        let number = state.withLock { state in
            state.lastNumber += 1
            state.entries.removeAll { $0.derivation == derivation }
            state.entries.append(Entry(number: state.lastNumber, derivation: derivation, key: key))
            if state.entries.count > Self.limit { state.entries.removeFirst() }
            return state.lastNumber
        }
        let (seconds, attoseconds) = duration.components
        DispatchQueue.global().asyncAfter(deadline: .now() + Double(seconds) + Double(attoseconds) * 1e-18) {
            [weak self] in self?.drop(number)
        }
    }

    private func drop(_ number: Int) { state.withLock { state in state.entries.removeAll { $0.number == number } } }
}
