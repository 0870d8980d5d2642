package import CofferSealing

/// The id of a revision: how many revisions lead up to it, and which of all possible ones it is, as in
/// `2-59284737f6f209344495057ac5007606`.
///
/// An id that Coffer makes follows from the parent's id and the content (see the section on revision ids in
/// `docs/FORMAT.md`), so that the same edit gets the same id everywhere. Ids from other databases are kept as they are.
/// Ids sort by generation, then by the bytes after the hyphen.
public struct RevisionID: Sendable {
    /// The revision's place in its history; the first is 1.
    public let generation: Int

    /// What stands after the hyphen.
    package let suffix: Suffix

    /// The bytes that an id has at most.
    package static let byteLimit = 200

    /// The part of a revision's id after the hyphen, in the form in which it is stored.
    package enum Suffix: Sendable, Hashable {
        /// 32 lower-case hex digits, as Coffer makes them.
        case digest(RevisionDigest)
        /// Whatever else another database made.
        case text(String)

        package static func == (left: Suffix, right: Suffix) -> Bool {
            switch (left, right) {
            case (.digest(let left), .digest(let right)): left == right
            case (.text(let left), .text(let right)): haveSameBytes(left, right)
            case (.digest, .text), (.text, .digest): false
            }
        }

        package func hash(into hasher: inout Hasher) {
            switch self {
            case .digest(let digest): hasher.combine(digest)
            case .text(let text): text.hashBytes(into: &hasher)
            }
        }

        /// The suffix as text.
        package var text: String {
            switch self {
            case .digest(let digest): digest.hex
            case .text(let text): text
            }
        }
    }

    /// The id that `text` says, or nil if it says anything else: a generation from 1 to `Int64.max` in decimal without
    /// leading zeros, a hyphen, and at least one more byte; at most 200 bytes.
    public init?(_ text: String) {
        guard let id = text.withBytes({ Self.parse($0) }) else { return nil }
        self = id
    }

    /// The same as ``init(_:)``.
    ///
    /// - Throws: 400 (invalidArgument) where `text` is not a revision id.
    package init(parsing text: String) throws(CofferError) {
        guard let id = RevisionID(text) else { throw CofferError(.invalidArgument, "not a revision id") }
        self = id
    }

    /// An id from its stored parts.
    ///
    /// - Throws: *damaged* (500) for parts that no id has.
    package init(generation: Int64, suffix: Suffix) throws(CofferError) {
        self = RevisionID(unchecked: Int(generation), suffix)
        let isValid =
            switch suffix {
            case .digest: generation >= 1
            // A text that is 32 hex digits would be a second form of the same id.
            case .text: RevisionID(description)?.suffix == suffix
            }
        guard isValid else { throw CofferError(.damaged, "the stored bytes are not a revision id") }
    }

    init(unchecked generation: Int, _ suffix: Suffix) {
        self.generation = generation
        self.suffix = suffix
    }

    private static func parse(_ bytes: Span<UInt8>) -> RevisionID? {
        guard bytes.count <= byteLimit else { return nil }
        var (at, generation) = (0, 0)
        while at < bytes.count, case let digit = bytes[at] &- UInt8(ascii: "0"), digit < 10 {
            if at == 0, digit == 0 { return nil }
            let (product, isTooLarge) = generation.multipliedReportingOverflow(by: 10)
            let (sum, isOver) = product.addingReportingOverflow(Int(digit))
            if isTooLarge || isOver { return nil }
            generation = sum
            at += 1
        }
        guard at > 0, at + 1 < bytes.count, bytes[at] == UInt8(ascii: "-") else { return nil }
        let suffix = bytes.extracting((at + 1)...)
        if let digest = RevisionDigest(hex: suffix) { return RevisionID(unchecked: generation, .digest(digest)) }
        return RevisionID(unchecked: generation, .text(String(utf8: suffix)))
    }
}

extension RevisionID: LosslessStringConvertible {
    /// The id as text.
    public var description: String {
        var text: [UInt8] = []
        text.reserveCapacity(48)
        appendText(to: &text)
        return String(utf8: text.span)
    }

    /// Appends the id's bytes.
    func appendText(to text: inout [UInt8]) {
        text.append(number: JSONNumber(generation))
        text.append(UInt8(ascii: "-"))
        switch suffix {
        case .digest(let digest): digest.appendHex(to: &text)
        case .text(let suffix): suffix.withBytes { text.append(copying: $0) }
        }
    }
}

extension RevisionID: Hashable, Comparable {
    /// Whether both are the same bytes.
    public static func == (left: RevisionID, right: RevisionID) -> Bool {
        left.generation == right.generation && left.suffix == right.suffix
    }

    /// Hashes what `==` compares.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(generation)
        hasher.combine(suffix)
    }

    /// Whether `left` sorts before `right`: by generation, then by the bytes after the hyphen.
    public static func < (left: RevisionID, right: RevisionID) -> Bool {
        if left.generation != right.generation { return left.generation < right.generation }
        if case .digest(let left) = left.suffix, case .digest(let right) = right.suffix { return left < right }
        return left.suffix.text.withBytes { left in right.suffix.text.withBytes { compareBytes(left, $0) < 0 } }
    }
}

extension RevisionID: Codable {
    /// Reads the id from its text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let id = RevisionID(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a revision id")
        }
        self = id
    }

    /// Writes the id's text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension RevisionID {
    /// The id of the revision that follows `parent` with this content.
    ///
    /// Its suffix is the first 16 bytes of SHA-256(u16be length of the parent's id, 0 without one ‖ parent's id
    /// ‖ 00, or 01 for a deletion ‖ canonical JSON).
    ///
    /// - Parameter digest: A SHA-256 to work with; it is left ready for the next message.
    /// - Throws: 400 (invalidArgument) where the parent's generation is the last there is.
    package static func make(
        parent: RevisionID?, isDeletion: Bool, body: CanonicalBody, digest: inout StreamingDigest
    ) throws(CofferError) -> RevisionID {
        let (generation, isOver) = (parent?.generation ?? 0).addingReportingOverflow(1)
        guard !isOver else { throw CofferError(.invalidArgument, "no generation follows the parent's") }
        var head: [UInt8] = []
        head.reserveCapacity(Self.byteLimit + 3)
        head += [0, 0]
        if let parent {
            parent.appendText(to: &head)
            head[1] = UInt8(head.count - 2)  // at most 200
        }
        head.append(isDeletion ? 1 : 0)
        digest.update(head)
        digest.update(body.bytes)
        let sum = digest.finalizeSHA256()
        return RevisionID(unchecked: generation, .digest(RevisionDigest(high: sum.word0, low: sum.word1)))
    }

    /// The id of the revision that follows `parent` with this content.
    ///
    /// - Throws: 400 (invalidArgument) where the parent's generation is the last there is; `encryptionUnavailable` (501).
    package static func make(
        parent: RevisionID?, isDeletion: Bool, body: CanonicalBody
    ) throws(CofferError) -> RevisionID {
        var digest = try StreamingDigest(.sha256)
        return try make(parent: parent, isDeletion: isDeletion, body: body, digest: &digest)
    }

    /// Whether a leaf wins over another one: a live one over a deleted one, then the one whose id sorts last.
    package static func isWinner(
        _ leaf: (id: RevisionID, isDeletion: Bool), over other: (id: RevisionID, isDeletion: Bool)
    ) -> Bool {
        leaf.isDeletion == other.isDeletion ? leaf.id > other.id : other.isDeletion
    }
}

/// The 16 bytes that make a revision id of Coffer's own.
package struct RevisionDigest: Sendable, Hashable, Comparable {
    /// The first and the second 8 bytes, each read as a big-endian number.
    package let high, low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The digest of these bytes, or nil if they are not 16.
    package init?(bytes: Span<UInt8>) {
        guard bytes.count == 16 else { return nil }
        high = bytes.word(at: 0).byteSwapped
        low = bytes.word(at: 8).byteSwapped
    }

    /// The 16 bytes.
    package var bytes: [UInt8] {
        // In one expression, its types would take the compiler seconds.
        (0..<16).map { place in
            let word = place < 8 ? high : low
            return UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * (place % 8)))
        }
    }

    /// By their bytes, which is the order of their hex digits, too.
    package static func < (left: RevisionDigest, right: RevisionDigest) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }

    /// The digest that 32 lower-case hex digits say, or nil if `text` is anything else.
    init?(hex text: Span<UInt8>) {
        guard text.count == 32 else { return nil }
        var words = (high: 0 as UInt64, low: 0 as UInt64)
        for at in 0..<32 {
            let digit: UInt8
            switch text[at] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = text[at] - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = text[at] - UInt8(ascii: "a") + 10
            default: return nil
            }
            if at < 16 {
                words.high = words.high << 4 | UInt64(digit)
            } else {
                words.low = words.low << 4 | UInt64(digit)
            }
        }
        (high, low) = words
    }

    /// 32 lower-case hex digits.
    var hex: String {
        var text: [UInt8] = []
        text.reserveCapacity(32)
        appendHex(to: &text)
        return String(utf8: text.span)
    }

    func appendHex(to text: inout [UInt8]) {
        for at in 0..<32 {
            let digit = UInt8(truncatingIfNeeded: (at < 16 ? high : low) >> UInt64(60 - 4 * (at % 16))) & 0xF
            text.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        }
    }
}
