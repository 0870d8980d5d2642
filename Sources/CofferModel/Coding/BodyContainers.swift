internal import CofferSealing

/// The members of an object that is being decoded.
final class BodyKeyedContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    private let source: BodyDecoder.Source
    private let node: Int

    /// The key after the one found last. Types ask for their keys in much the same order every time, and so do dictionaries.
    private var next: Int

    /// The nodes of all keys, in order, once a large object has been searched.
    private var sortedKeys: [Int] = []

    init(source: BodyDecoder.Source, node: Int) throws {
        guard source.index.nodes[node].kind == .object else { throw source.mismatch([String: Any].self, node) }
        self.source = source
        self.node = node
        next = node + 1
    }

    /// The value of a key, or nil if there isn't one.
    private func find(_ key: String) -> Int? {
        let (index, count) = (source.index, Int(source.index.nodes[node].count))
        let end = Int(index.nodes[node].next)
        return key.withBytes { key in
            if count > JSONObject.linearSearchLimit {
                if next < end, index.isKey(next, key) { return found(next) }
                return searchSorted(key)
            }
            var at = next
            for _ in 0..<count {
                if at >= end { at = node + 1 }
                if index.isKey(at, key) { return found(at) }
                at = Int(index.nodes[at + 1].next)
            }
            return nil
        }
    }

    private func found(_ key: Int) -> Int {
        next = Int(source.index.nodes[key + 1].next)
        return key + 1
    }

    private func searchSorted(_ key: Span<UInt8>) -> Int? {
        if sortedKeys.isEmpty { sortedKeys = keyNodes() }
        var (low, high) = (0, sortedKeys.count)
        while low < high {
            let middle = (low + high) / 2
            let order = source.index.compareKey(sortedKeys[middle], key)
            if order == 0 { return found(sortedKeys[middle]) }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return nil
    }

    private func keyNodes() -> [Int] {
        var keys: [Int] = []
        keys.reserveCapacity(Int(source.index.nodes[node].count))
        var at = node + 1
        while at < Int(source.index.nodes[node].next) {
            keys.append(at)
            at = Int(source.index.nodes[at + 1].next)
        }
        return keys
    }

    private func require(_ key: some CodingKey) throws -> Int {
        guard let value = find(key.stringValue) else {
            throw DecodingError.keyNotFound(key, source.context("there is no such member", node))
        }
        return value
    }

    var codingPath: [any CodingKey] { source.index.path(to: node) }
    var allKeys: [Key] { keyNodes().compactMap { Key(stringValue: source.index.string($0)) } }

    func contains(_ key: Key) -> Bool { find(key.stringValue) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { source.isNull(try require(key)) }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try source.bool(require(key)) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try source.string(require(key)) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try source.double(require(key)) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try source.float(require(key)) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try source.integer(require(key)) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try source.integer(require(key)) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try source.integer(require(key)) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try source.integer(require(key)) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try source.integer(require(key)) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try source.integer(require(key)) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try source.integer(require(key)) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try source.integer(require(key)) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try source.integer(require(key)) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try source.integer(require(key)) }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try source.decode(type, require(key))
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        KeyedDecodingContainer(try BodyKeyedContainer<NestedKey>(source: source, node: require(key)))
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try BodyUnkeyedContainer(source: source, node: require(key))
    }

    func superDecoder() -> any Decoder { superDecoder(key: superKey) }
    func superDecoder(forKey key: Key) -> any Decoder { superDecoder(key: key) }

    private func superDecoder(key: some CodingKey) -> any Decoder {
        BodyDecoder(source: source, node: find(key.stringValue) ?? source.index.missing)
    }
}

/// The elements of an array that is being decoded.
struct BodyUnkeyedContainer: UnkeyedDecodingContainer {
    private let source: BodyDecoder.Source
    private let node: Int
    private var next: Int
    private(set) var currentIndex = 0

    init(source: BodyDecoder.Source, node: Int) throws {
        guard source.index.nodes[node].kind == .array else { throw source.mismatch([Any].self, node) }
        self.source = source
        self.node = node
        next = node + 1
    }

    var codingPath: [any CodingKey] { source.index.path(to: node) }
    var count: Int? { Int(source.index.nodes[node].count) }
    var isAtEnd: Bool { next >= Int(source.index.nodes[node].next) }

    /// Reads the next element, and goes on to the one after it if that was not an error.
    private mutating func take<T>(_ type: T.Type, _ read: (Int) throws -> T) throws -> T {
        guard !isAtEnd else {
            let path = codingPath + [IndexKey(currentIndex)]
            let context = DecodingError.Context(codingPath: path, debugDescription: "the array has no more elements")
            throw DecodingError.valueNotFound(type, context)
        }
        let value = try read(next)
        next = Int(source.index.nodes[next].next)
        currentIndex += 1
        return value
    }

    mutating func decodeNil() throws -> Bool {
        // An element that isn't null is still to be read.
        if !isAtEnd, !source.isNull(next) { return false }
        return try take(Bool.self) { _ in true }
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try take(type, source.bool) }
    mutating func decode(_ type: String.Type) throws -> String { try take(type, source.string) }
    mutating func decode(_ type: Double.Type) throws -> Double { try take(type, source.double) }
    mutating func decode(_ type: Float.Type) throws -> Float { try take(type, source.float) }
    mutating func decode(_ type: Int.Type) throws -> Int { try take(type, source.integer) }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try take(type, source.integer) }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try take(type, source.integer) }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try take(type, source.integer) }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try take(type, source.integer) }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try take(type, source.integer) }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try take(type, source.integer) }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try take(type, source.integer) }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try take(type, source.integer) }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try take(type, source.integer) }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try take(type) { [source] in try source.decode(type, $0) }
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try take(KeyedDecodingContainer<NestedKey>.self) { [source] in
            KeyedDecodingContainer(try BodyKeyedContainer<NestedKey>(source: source, node: $0))
        }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try take((any UnkeyedDecodingContainer).self) { [source] in try BodyUnkeyedContainer(source: source, node: $0) }
    }

    mutating func superDecoder() throws -> any Decoder {
        try take((any Decoder).self) { [source] in BodyDecoder(source: source, node: $0) }
    }
}

/// One value that is being decoded alone.
struct BodySingleValueContainer: SingleValueDecodingContainer {
    let source: BodyDecoder.Source
    let node: Int

    var codingPath: [any CodingKey] { source.index.path(to: node) }

    func decodeNil() -> Bool { source.isNull(node) }
    func decode(_ type: Bool.Type) throws -> Bool { try source.bool(node) }
    func decode(_ type: String.Type) throws -> String { try source.string(node) }
    func decode(_ type: Double.Type) throws -> Double { try source.double(node) }
    func decode(_ type: Float.Type) throws -> Float { try source.float(node) }
    func decode(_ type: Int.Type) throws -> Int { try source.integer(node) }
    func decode(_ type: Int8.Type) throws -> Int8 { try source.integer(node) }
    func decode(_ type: Int16.Type) throws -> Int16 { try source.integer(node) }
    func decode(_ type: Int32.Type) throws -> Int32 { try source.integer(node) }
    func decode(_ type: Int64.Type) throws -> Int64 { try source.integer(node) }
    func decode(_ type: UInt.Type) throws -> UInt { try source.integer(node) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try source.integer(node) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try source.integer(node) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try source.integer(node) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try source.integer(node) }
    func decode<T: Decodable>(_ type: T.Type) throws -> T { try source.decode(type, node) }
}
