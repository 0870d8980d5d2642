/// A JSON object: members in the order in which they were added, each key once, keys compared as UTF-8 bytes.
///
/// ```swift
/// var person: JSONObject = ["name": "Robin", "tags": ["a", "b"]]
/// person["age"] = 31
/// person["name"] = nil                 // removes the member
/// person["nickname"] = .null           // a member that is null
/// let age: Int? = person["age"]
/// let street = person["address"]?["street"]
/// ```
///
/// Looking up a member takes constant time, removing one time in proportion to their number. Two objects are equal when
/// they have the same members, in whatever order. A value: copies are independent.
public struct JSONObject: Sendable {
    struct Member: Sendable {
        let key: String
        var value: JSONValue
    }

    /// Up to here the members are searched one by one, which is faster than hashing the key.
    static let linearSearchLimit = 16

    private(set) var members: [Member]

    /// Where each key stands, once there are more than ``linearSearchLimit`` members, unless they are sorted.
    private var positions: [ByteString: Int]?

    /// Whether the members are known to stand in canonical order, so that the search halves.
    private var isSorted: Bool

    /// An object without members.
    public init() {
        members = []
        isSorted = false
    }

    /// An object of these members, in this order. Two members of the same key are a programming error.
    public init(uniqueKeysWithValues members: some Sequence<(String, JSONValue)>) {
        self.init()
        for (key, value) in members {
            precondition(position(of: key) == nil, "two members of an object have the same key")
            append(Member(key: key, value: value))
        }
    }

    /// These members, whose keys are known to differ.
    init(uniqueMembers members: [Member]) {
        self.init()
        self.members = members
        guard members.count > Self.linearSearchLimit else { return }
        isSorted = hasCanonicalOrder
        if !isSorted { buildPositions() }
    }

    /// How many members there are.
    public var count: Int { members.count }

    /// Whether there are no members.
    public var isEmpty: Bool { members.isEmpty }

    /// The keys, in order.
    public var keys: [String] { members.map(\.key) }

    /// The values, in order.
    public var values: [JSONValue] { members.map(\.value) }

    /// The member of that key, or nil if there isn't one.
    ///
    /// Setting a value replaces the member in its place, or adds it at the end. Setting nil removes the member; to keep
    /// it without a value, set `.null`.
    public subscript(key: String) -> JSONValue? {
        get { position(of: key).map { members[$0].value } }
        set {
            switch (position(of: key), newValue) {
            case (let position?, let value?): members[position].value = value
            case (let position?, nil): remove(at: position)
            case (nil, let value?): append(Member(key: key, value: value))
            case (nil, nil): break
            }
        }
    }

    /// The member of that key as a Swift value; nil if there isn't one, or one of another type.
    ///
    /// Setting nil removes the member.
    @_disfavoredOverload
    public subscript<T: JSONConvertible>(key: String) -> T? {
        get { self[key].flatMap { T(jsonValue: $0) } }
        set { self[key] = newValue?.jsonValue }
    }
}

extension JSONObject {
    /// Whether the members stand in the order of canonical JSON.
    var hasCanonicalOrder: Bool {
        isSorted || members.indices.dropFirst().allSatisfy { Self.order(members[$0 - 1], members[$0]) < 0 }
    }

    /// Less than, equal to or more than zero, as the key of `left` sorts before, with or after that of `right`.
    static func order(_ left: Member, _ right: Member) -> Int {
        left.key.withBytes { left in right.key.withBytes { compareAsUTF16(left, $0) } }
    }

    private func position(of key: String) -> Int? {
        if let positions { return positions[ByteString(key)] }
        if isSorted, members.count > Self.linearSearchLimit { return sortedPosition(of: key) }
        return key.withBytes { bytes in
            members.firstIndex { $0.key.withBytes { haveSameBytes($0, bytes) } }
        }
    }

    private func sortedPosition(of key: String) -> Int? {
        key.withBytes { bytes in
            var (low, high) = (0, members.count)
            while low < high {
                let middle = (low + high) / 2
                let order = members[middle].key.withBytes { compareAsUTF16($0, bytes) }
                if order == 0 { return middle }
                if order < 0 { low = middle + 1 } else { high = middle }
            }
            return nil
        }
    }

    /// Adds a member whose key is new.
    private mutating func append(_ member: Member) {
        members.append(member)
        isSorted = false
        if positions != nil {
            positions?[ByteString(member.key)] = members.count - 1
        } else if members.count > Self.linearSearchLimit {
            buildPositions()
        }
    }

    private mutating func buildPositions() {
        var positions: [ByteString: Int] = [:]
        positions.reserveCapacity(members.count)
        for at in members.indices { positions[ByteString(members[at].key)] = at }
        self.positions = positions
    }

    private mutating func remove(at position: Int) {
        let removed = members.remove(at: position)
        guard var shifted = positions else { return }
        positions = nil
        shifted[ByteString(removed.key)] = nil
        for at in shifted.values.indices where shifted.values[at] > position { shifted.values[at] -= 1 }
        positions = shifted
    }
}

extension JSONObject: CustomStringConvertible {
    /// The object as canonical JSON: see ``JSONValue/description``.
    public var description: String { JSONValue.object(self).description }
}

extension JSONObject: Hashable {
    /// Whether both have the same members, in whatever order.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        guard left.count == right.count else { return false }
        // Most often the order is the same, too.
        for (at, member) in left.members.enumerated() {
            let twin = right.members[at]
            let other = haveSameBytes(twin.key, member.key) ? twin.value : right[member.key]
            guard other == member.value else { return false }
        }
        return true
    }

    /// Hashes what `==` compares.
    public func hash(into hasher: inout Hasher) {
        // A sum, since the order does not count.
        var sum = 0
        for member in members {
            var inner = Hasher()
            member.key.hashBytes(into: &inner)
            inner.combine(member.value)
            sum &+= inner.finalize()
        }
        hasher.combine(count)
        hasher.combine(sum)
    }
}

extension JSONObject: RandomAccessCollection {
    /// The place of the first member.
    public var startIndex: Int { 0 }

    /// The place after the last member.
    public var endIndex: Int { members.count }

    /// The member at that place.
    public subscript(position: Int) -> (key: String, value: JSONValue) {
        (members[position].key, members[position].value)
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// An object of these members, in this order. Two members of the same key are a programming error.
    public init(dictionaryLiteral members: (String, JSONValue)...) {
        self.init(uniqueKeysWithValues: members)
    }
}

extension JSONObject: Codable {
    /// Reads an object.
    public init(from decoder: any Decoder) throws {
        try self.init(from: decoder.container(keyedBy: JSONKey.self))
    }

    init(from container: KeyedDecodingContainer<JSONKey>) throws {
        self.init()
        for key in container.allKeys { self[key.stringValue] = try container.decode(JSONValue.self, forKey: key) }
    }

    /// Writes an object.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: JSONKey.self)
        for member in members { try container.encode(member.value, forKey: JSONKey(member.key)) }
    }
}
