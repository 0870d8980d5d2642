/// The clients that must wait before the next password is checked, after too many wrong ones.
///
/// An address has a few attempts; after each further wrong one it waits twice as long. It loses one of them with each minute,
/// and a right password forgives none: somebody who knows one would guess the others' in between. All addresses
/// together have a number of attempts, too; without any left only those wait that never said a right one, so that
/// nobody locks out who is known.
struct PasswordAttempts {
    typealias Instant = ContinuousClock.Instant

    private struct Record {
        var failureCount: Int
        /// When the last of them was, or one was last forgotten.
        var changed: Instant
        var waitsUntil: Instant
    }

    static let freeCount = 5
    static let longestPause: Duration = .seconds(300)
    private static let forgets: Duration = .seconds(60)
    /// So many wrong ones, and so many a second for long.
    static let commonCount = 500.0
    private static let commonRate = 2.0
    /// No more addresses are kept, of either kind: a table that is full loses those that it can best do without.
    static let addressLimit = 4096

    private var records: [String: Record] = [:]
    private var known: [String: Instant] = [:]
    private var commonLeft = commonCount
    private var commonChanged: Instant?

    /// How long the address has to wait; nil if it need not. Where there is no address, all count as one.
    mutating func pause(of address: String?, at now: Instant) -> Duration? {
        let place = Self.place(of: address)
        if let place, let record = records[place], record.waitsUntil > now { return record.waitsUntil - now }
        refill(at: now)
        guard commonLeft < 1, place.flatMap({ known[$0] }) == nil else { return nil }
        return .seconds((1 - commonLeft) / Self.commonRate)
    }

    /// Notes a wrong password.
    mutating func fail(_ address: String?, at now: Instant) {
        refill(at: now)
        commonLeft = max(0, commonLeft - 1)
        guard let place = Self.place(of: address) else { return }
        var record = records[place] ?? Record(failureCount: 0, changed: now, waitsUntil: now)
        Self.forget(&record, at: now)
        record.failureCount += 1
        record.changed = now
        let doublings = record.failureCount - Self.freeCount
        if doublings >= 0 { record.waitsUntil = now + min(.seconds(1 << min(doublings, 20)), Self.longestPause) }
        records[place] = record
        Self.makeRoom(in: &records) { ($0.failureCount, $0.changed) < ($1.failureCount, $1.changed) }
    }

    /// Notes a right one.
    mutating func succeed(_ address: String?, at now: Instant) {
        guard let place = Self.place(of: address) else { return }
        known[place] = now
        Self.makeRoom(in: &known, by: <)
    }

    /// Drops the eighth that comes first, where there are too many: rarely, so that it costs little.
    private static func makeRoom<Value>(in table: inout [String: Value], by isLess: (Value, Value) -> Bool) {
        guard table.count > addressLimit else { return }
        for (place, _) in table.sorted(by: { isLess($0.value, $1.value) }).prefix(addressLimit / 8) {
            table[place] = nil
        }
    }

    /// How many addresses are kept.
    var addressCount: Int { max(records.count, known.count) }

    private mutating func refill(at now: Instant) {
        if let since = commonChanged, now > since {
            commonLeft = min(Self.commonCount, commonLeft + (now - since) / .seconds(1) * Self.commonRate)
        }
        commonChanged = max(now, commonChanged ?? now)
    }

    private static func forget(_ record: inout Record, at now: Instant) {
        let count = Int(max(0, (now - record.changed) / forgets))
        record.failureCount = max(0, record.failureCount - count)
    }

    /// What counts as one address: of version 6 the half that names the network, since a host has all of the other half.
    private static func place(of address: String?) -> String? {
        guard let address, address.contains(":") else { return address }
        // Written short, `::` stands for zeros; `::ffff:10.0.0.1` is one of version 4.
        let bare = address.prefix { $0 != "%" }
        if bare.contains(".") { return String(bare.drop { $0 == ":" || $0.lowercased() == "f" }) }
        let sides = bare.split(separator: ":", omittingEmptySubsequences: false)
        var groups: [Substring] = []
        for (place, group) in sides.enumerated() {
            guard group.isEmpty, place > 0, place < sides.count - 1 else {
                groups.append(group.isEmpty ? "0" : group)
                continue
            }
            groups += Array(repeating: "0", count: max(0, 9 - sides.count))
        }
        return groups.prefix(4).joined(separator: ":")
    }
}

/// Says that a password was not looked at.
struct TooManyAttempts: Error {
    let pause: Duration
}
