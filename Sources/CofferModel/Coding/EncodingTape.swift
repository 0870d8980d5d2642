internal import CofferSealing

/// What an encoder gathers: the text of keys and plain values one after another, and who belongs to whom.
///
/// A value may ask for containers and fill them in any order, and does not say when it is done, so nothing can be put in
/// its place before the end. The tape keeps every piece where it was written, and is copied into canonical JSON once.
struct EncodingTape {
    enum Kind {
        /// Nothing has been asked for yet. A value that stays so is an empty object, as with JSONEncoder.
        case undecided
        /// Plain text: a string, number, `true`, `false`, `null`, or a whole JSON value.
        case text
        case array
        case object
    }

    /// A value that has, or may yet get, something in it.
    struct Node {
        var kind = Kind.undecided
        /// Whether it was asked for as a nested container: a second one for the same key goes on with the first.
        var isNestedContainer = false
        /// How many containers it is in.
        let depth: Int
        /// The first and last of its entries, or -1.
        var first = -1
        var last = -1
        var count = 0
        /// Where its text stands.
        var text = 0..<0
        /// Where the node is, for coding paths.
        let parent: Int
        let key: (any CodingKey)?

        /// Notes its next entry.
        ///
        /// - Returns: the one before, or -1.
        fileprivate mutating func noteEntry(_ place: Int) -> Int {
            let previous = last
            if previous < 0 { first = place }
            last = place
            count += 1
            return previous
        }
    }

    /// A member of an object or an element of an array.
    struct Entry: KeyedMember {
        let key: MemberKey
        /// Its text: a member's key with a colon after it, and the value, unless that is a node.
        let text: Range<Int>
        /// Its value, or -1 where that is plain text.
        let node: Int
        /// The entry after this one in the same container, or -1.
        var next = -1
    }

    static let root = 0

    private(set) var bytes: [UInt8] = []
    private(set) var nodes: [Node] = []
    private(set) var entries: [Entry] = []
    /// The bytes of all keys with escapes.
    private(set) var unescapedKeys: [UInt8] = []

    /// What went wrong where nothing could be thrown.
    private(set) var failure: CofferError?

    /// How many values there are within those that were added as a whole.
    private var nestedValueCount = 0

    /// How many values have been noted. The root is not an entry.
    var valueCount: Int { entries.count &+ nestedValueCount &+ 1 }

    init() {
        // Each somewhat less than 1 KiB, enough for most documents: what malloc has at hand.
        bytes.reserveCapacity(960)
        nodes.reserveCapacity(8)
        entries.reserveCapacity(16)
        nodes.append(Node(depth: 0, parent: -1, key: nil))
    }

    // MARK: Nodes

    /// Says what a node is. That something is two things at once is an error in the type that is being encoded.
    mutating func become(_ kind: Kind, _ node: Int) {
        let isNew = nodes[node].kind == .undecided
        precondition(isNew || nodes[node].kind == kind && kind != .text, "a value can be encoded in only one way")
        nodes[node].kind = kind
        if kind != .text, nodes[node].depth >= JSONLimits.depth { failure = failure ?? .tooDeep }
    }

    /// A new node inside `parent`, of which it is not part yet.
    mutating func makeNode(in parent: Int, key: (any CodingKey)?) -> Int {
        nodes.append(Node(depth: nodes[parent].depth + 1, parent: parent, key: key))
        return nodes.count - 1
    }

    /// Makes a node a member or an element of `parent`.
    mutating func append(_ node: Int, to parent: Int, key: String?) {
        let start = bytes.count
        let key = note(key)
        link(Entry(key: key, text: start..<bytes.count, node: node), to: parent)
    }

    /// Makes a new container a member or an element of `parent`.
    mutating func appendContainer(_ kind: Kind, to parent: Int, key: String?, codingKey: any CodingKey) -> Int {
        let node = makeNode(in: parent, key: codingKey)
        become(kind, node)
        nodes[node].isNestedContainer = true
        append(node, to: parent, key: key)
        return node
    }

    /// Puts what is in a container before what is in the nested container of the same key that came later, if there is one.
    mutating func merge(_ earlier: Int, into later: Int) {
        guard earlier >= 0, later >= 0, nodes[later].isNestedContainer, nodes[earlier].kind == nodes[later].kind,
            nodes[earlier].first >= 0
        else { return }
        entries[nodes[earlier].last].next = nodes[later].first
        if nodes[later].first < 0 { nodes[later].last = nodes[earlier].last }
        nodes[later].first = nodes[earlier].first
    }

    private mutating func link(_ entry: Entry, to parent: Int) {
        entries.append(entry)
        let place = entries.count - 1
        let previous = nodes[parent].noteEntry(place)
        if previous >= 0 { entries[previous].next = place }
    }

    /// Writes a member's key, and a colon.
    @inline(__always)
    private mutating func note(_ key: String?) -> MemberKey {
        guard let key else { return MemberKey(prefix: 0, bytes: 0..<0, isUnescaped: false) }
        return key.withBytes { key in
            var start = bytes.count + 1
            bytes.append(quoting: key)
            let hasEscapes = bytes.count > start + key.count + 1
            bytes.append(UInt8(ascii: ":"))
            if hasEscapes {
                start = unescapedKeys.count
                unescapedKeys.append(copying: key)
            }
            return MemberKey(
                prefix: MemberKey.prefix(of: key), bytes: start..<start + key.count, isUnescaped: hasEscapes)
        }
    }

    // MARK: Plain values

    /// Adds a member or an element that is plain text.
    @inline(__always)
    private mutating func append(to parent: Int, key: String?, _ write: (inout [UInt8]) -> Void) {
        let start = bytes.count
        let key = note(key)
        write(&bytes)
        link(Entry(key: key, text: start..<bytes.count, node: -1), to: parent)
        // Positions are kept in 32 bits.
        if bytes.count > JSONLimits.byteCount { fail(.tooLarge) }
        if valueCount > JSONLimits.valueCount { fail(.tooManyValues) }
    }

    /// Lets go of what there is, which is of no use any more.
    private mutating func fail(_ error: CofferError) {
        bytes.removeAll()
        unescapedKeys.removeAll()
        failure = failure ?? error
    }

    mutating func append(_ value: String, to parent: Int, key: String?) {
        append(to: parent, key: key) { bytes in value.withBytes { bytes.append(quoting: $0) } }
    }

    mutating func append(_ value: Bool, to parent: Int, key: String?) {
        append(to: parent, key: key) { $0.append(ascii: value ? "true" : "false") }
    }

    mutating func appendNull(to parent: Int, key: String?) {
        append(to: parent, key: key) { $0.append(ascii: "null") }
    }

    mutating func append(_ value: JSONNumber, to parent: Int, key: String?) throws(CofferError) {
        guard value.isFinite else { throw .notFinite }
        append(to: parent, key: key) { $0.append(number: value) }
    }

    mutating func append(_ value: JSONValue, to parent: Int, key: String?) throws(CofferError) {
        // Written before the key is noted: a value that is refused leaves nothing behind.
        var text: [UInt8] = []
        let count = try CanonicalWriter.append(
            value, to: &text, depth: nodes[parent].depth + 2, valueLimit: JSONLimits.valueCount)
        nestedValueCount += count - 1
        append(to: parent, key: key) { $0.append(contentsOf: text) }
    }

    /// Gives a node its text.
    mutating func set(_ node: Int, _ value: JSONValue) throws(CofferError) {
        var text: [UInt8] = []
        let count = try CanonicalWriter.append(
            value, to: &text, depth: nodes[node].depth + 1, valueLimit: JSONLimits.valueCount)
        nestedValueCount += count - 1
        become(.text, node)
        nodes[node].text = bytes.count..<bytes.count + text.count
        bytes.append(contentsOf: text)
    }

    // MARK: Paths

    /// The keys that lead to a node.
    func codingPath(of node: Int) -> [any CodingKey] {
        var path: [any CodingKey] = []
        var at = node
        while at > Self.root {
            if let key = nodes[at].key { path.append(key) }
            at = nodes[at].parent
        }
        return path.reversed()
    }
}

extension CofferError {
    static var notFinite: CofferError { CofferError(.invalidJSON, "a number that is infinite or NaN") }
    static var tooDeep: CofferError {
        CofferError(.invalidJSON, "more than \(JSONLimits.depth) containers in each other")
    }
    static var tooLarge: CofferError { CofferError(.invalidJSON, "more than \(JSONLimits.byteCount) bytes") }
}
