internal import CofferSealing

/// The members of an object that is being encoded.
struct TapeKeyedContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let recorder: TapeEncoder.Recorder
    let node: Int

    var codingPath: [any CodingKey] { recorder.tape.codingPath(of: node) }

    func encodeNil(forKey key: Key) { recorder.tape.appendNull(to: node, key: key.stringValue) }
    func encode(_ value: Bool, forKey key: Key) { recorder.tape.append(value, to: node, key: key.stringValue) }
    func encode(_ value: String, forKey key: Key) { recorder.tape.append(value, to: node, key: key.stringValue) }
    func encode(_ value: Double, forKey key: Key) throws { try encode(JSONNumber(value), key) }
    func encode(_ value: Float, forKey key: Key) throws { try encode(JSONNumber(value.shortestDouble), key) }
    func encode(_ value: Int, forKey key: Key) throws { try encode(JSONNumber(Int64(value)), key) }
    func encode(_ value: Int8, forKey key: Key) throws { try encode(JSONNumber(Int64(value)), key) }
    func encode(_ value: Int16, forKey key: Key) throws { try encode(JSONNumber(Int64(value)), key) }
    func encode(_ value: Int32, forKey key: Key) throws { try encode(JSONNumber(Int64(value)), key) }
    func encode(_ value: Int64, forKey key: Key) throws { try encode(JSONNumber(Int64(value)), key) }
    func encode(_ value: UInt, forKey key: Key) throws { try encode(JSONNumber(UInt64(value)), key) }
    func encode(_ value: UInt8, forKey key: Key) throws { try encode(JSONNumber(UInt64(value)), key) }
    func encode(_ value: UInt16, forKey key: Key) throws { try encode(JSONNumber(UInt64(value)), key) }
    func encode(_ value: UInt32, forKey key: Key) throws { try encode(JSONNumber(UInt64(value)), key) }
    func encode(_ value: UInt64, forKey key: Key) throws { try encode(JSONNumber(UInt64(value)), key) }

    private func encode(_ number: JSONNumber, _ key: Key) throws(CofferError) {
        try recorder.tape.append(number, to: node, key: key.stringValue)
    }

    func encode(_ value: some Encodable, forKey key: Key) throws {
        try recorder.append(value, to: node, key: key.stringValue, codingKey: key)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        let nested = recorder.tape.appendContainer(.object, to: node, key: key.stringValue, codingKey: key)
        return KeyedEncodingContainer(TapeKeyedContainer<NestedKey>(recorder: recorder, node: nested))
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        let nested = recorder.tape.appendContainer(.array, to: node, key: key.stringValue, codingKey: key)
        return TapeUnkeyedContainer(recorder: recorder, node: nested)
    }

    func superEncoder() -> any Encoder { superEncoder(key: superKey) }
    func superEncoder(forKey key: Key) -> any Encoder { superEncoder(key: key) }

    private func superEncoder(key: any CodingKey) -> any Encoder {
        let nested = recorder.tape.makeNode(in: node, key: key)
        recorder.tape.append(nested, to: node, key: key.stringValue)
        return TapeEncoder(recorder: recorder, node: nested)
    }
}

/// The elements of an array that is being encoded.
struct TapeUnkeyedContainer: UnkeyedEncodingContainer {
    let recorder: TapeEncoder.Recorder
    let node: Int

    var codingPath: [any CodingKey] { recorder.tape.codingPath(of: node) }
    var count: Int { recorder.tape.nodes[node].count }

    func encodeNil() { recorder.tape.appendNull(to: node, key: nil) }
    func encode(_ value: Bool) { recorder.tape.append(value, to: node, key: nil) }
    func encode(_ value: String) { recorder.tape.append(value, to: node, key: nil) }
    func encode(_ value: Double) throws { try encode(JSONNumber(value)) }
    func encode(_ value: Float) throws { try encode(JSONNumber(value.shortestDouble)) }
    func encode(_ value: Int) throws { try encode(JSONNumber(Int64(value))) }
    func encode(_ value: Int8) throws { try encode(JSONNumber(Int64(value))) }
    func encode(_ value: Int16) throws { try encode(JSONNumber(Int64(value))) }
    func encode(_ value: Int32) throws { try encode(JSONNumber(Int64(value))) }
    func encode(_ value: Int64) throws { try encode(JSONNumber(Int64(value))) }
    func encode(_ value: UInt) throws { try encode(JSONNumber(UInt64(value))) }
    func encode(_ value: UInt8) throws { try encode(JSONNumber(UInt64(value))) }
    func encode(_ value: UInt16) throws { try encode(JSONNumber(UInt64(value))) }
    func encode(_ value: UInt32) throws { try encode(JSONNumber(UInt64(value))) }
    func encode(_ value: UInt64) throws { try encode(JSONNumber(UInt64(value))) }

    private func encode(_ number: JSONNumber) throws(CofferError) {
        try recorder.tape.append(number, to: node, key: nil)
    }

    func encode(_ value: some Encodable) throws {
        try recorder.append(value, to: node, key: nil, codingKey: IndexKey(count))
    }

    func nestedContainer<NestedKey: CodingKey>(keyedBy type: NestedKey.Type) -> KeyedEncodingContainer<NestedKey> {
        let nested = recorder.tape.appendContainer(.object, to: node, key: nil, codingKey: IndexKey(count))
        return KeyedEncodingContainer(TapeKeyedContainer<NestedKey>(recorder: recorder, node: nested))
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        let nested = recorder.tape.appendContainer(.array, to: node, key: nil, codingKey: IndexKey(count))
        return TapeUnkeyedContainer(recorder: recorder, node: nested)
    }

    func superEncoder() -> any Encoder {
        let nested = recorder.tape.makeNode(in: node, key: IndexKey(count))
        recorder.tape.append(nested, to: node, key: nil)
        return TapeEncoder(recorder: recorder, node: nested)
    }
}

/// One value that is being encoded alone.
struct TapeSingleValueContainer: SingleValueEncodingContainer {
    let recorder: TapeEncoder.Recorder
    let node: Int

    var codingPath: [any CodingKey] { recorder.tape.codingPath(of: node) }

    func encodeNil() throws { try recorder.tape.set(node, .null) }
    func encode(_ value: Bool) throws { try recorder.tape.set(node, .bool(value)) }
    func encode(_ value: String) throws { try recorder.tape.set(node, .string(value)) }
    func encode(_ value: Double) throws { try recorder.tape.set(node, .number(JSONNumber(value))) }
    func encode(_ value: Float) throws { try recorder.tape.set(node, .number(JSONNumber(value.shortestDouble))) }
    func encode(_ value: Int) throws { try recorder.tape.set(node, .number(JSONNumber(Int64(value)))) }
    func encode(_ value: Int8) throws { try recorder.tape.set(node, .number(JSONNumber(Int64(value)))) }
    func encode(_ value: Int16) throws { try recorder.tape.set(node, .number(JSONNumber(Int64(value)))) }
    func encode(_ value: Int32) throws { try recorder.tape.set(node, .number(JSONNumber(Int64(value)))) }
    func encode(_ value: Int64) throws { try recorder.tape.set(node, .number(JSONNumber(Int64(value)))) }
    func encode(_ value: UInt) throws { try recorder.tape.set(node, .number(JSONNumber(UInt64(value)))) }
    func encode(_ value: UInt8) throws { try recorder.tape.set(node, .number(JSONNumber(UInt64(value)))) }
    func encode(_ value: UInt16) throws { try recorder.tape.set(node, .number(JSONNumber(UInt64(value)))) }
    func encode(_ value: UInt32) throws { try recorder.tape.set(node, .number(JSONNumber(UInt64(value)))) }
    func encode(_ value: UInt64) throws { try recorder.tape.set(node, .number(JSONNumber(UInt64(value)))) }
    func encode(_ value: some Encodable) throws { try recorder.set(value, of: node) }
}
