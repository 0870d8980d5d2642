internal import CByHand
internal import Foundation

/// Documents by hand: see Documents.h.
@safe final class HandDocuments {
    private let store: OpaquePointer

    /// A new database.
    convenience init(_ bench: Bench, isDurable: Bool) throws {
        try self.init(
            new: bench.newPath("documents"), cacheByteCount: DocumentSet.cacheByteCount, isDurable: isDurable)
    }

    init(new path: String, cacheByteCount: Int, isDurable: Bool) throws {
        guard let store = unsafe documents_new(path, Self.hexKey, Int32(cacheByteCount >> 10), isDurable) else {
            throw Failure("can't make a database by hand")
        }
        unsafe self.store = store
    }

    /// A new database with nothing but keys and values, durable.
    init(newPairs path: String, cacheByteCount: Int) throws {
        guard let store = unsafe documents_new_pairs(path, Self.hexKey, Int32(cacheByteCount >> 10), true) else {
            throw Failure("can't make a table of keys and values by hand")
        }
        unsafe self.store = store
    }

    /// A database that is there, durable.
    init(openAt path: String, cacheByteCount: Int) throws {
        guard let store = unsafe documents_open(path, Self.hexKey, Int32(cacheByteCount >> 10), true) else {
            throw Failure("can't open a database by hand")
        }
        unsafe self.store = store
    }

    private static let hexKey = String(repeating: "07", count: 32)

    deinit { unsafe documents_free(store) }

    func transaction(_ body: () throws -> Void) throws {
        try expect(unsafe documents_begin(store), "BEGIN by hand failed")
        try body()
        try expect(unsafe documents_commit(store), "COMMIT by hand failed")
    }

    func insert(_ document: DocumentSet.Document) throws {
        try expect(unsafe write(document, documents_insert), "inserting by hand failed")
    }

    func update(_ document: DocumentSet.Document) throws {
        try expect(unsafe write(document, documents_update), "updating by hand failed")
    }

    private func write(
        _ document: DocumentSet.Document,
        _ write: (OpaquePointer?, UnsafePointer<CChar>?, Int, UnsafeRawPointer?, Int) -> Bool
    ) -> Bool {
        unsafe document.json.withUnsafeBytes { body in
            unsafe write(store, document.id, document.id.utf8.count, body.baseAddress, body.count)
        }
    }

    /// The body's length, as a copy of it would have: the copy is made.
    func read(_ id: String) throws -> Int {
        var copied = Data()
        let isFine = unsafe withUnsafeMutablePointer(to: &copied) { copied in
            unsafe documents_read(store, id, id.utf8.count, copyBody, copied)
        }
        try expect(isFine, "reading by hand failed")
        return copied.count
    }

    /// How many bytes all bodies have, each of which is copied.
    func readAll() throws -> Int {
        var sum = ByteSum()
        let isFine = unsafe withUnsafeMutablePointer(to: &sum) { sum in
            unsafe documents_read_all(store, addBody, sum)
        }
        try expect(isFine, "reading by hand failed")
        return sum.count
    }

    // MARK: Its index

    /// Makes the index, with what `JSONSerialization` reads of each body.
    func makeIndex() throws {
        try expect(unsafe documents_index(store, 20_000, makeKey, nil), "indexing by hand failed")
    }

    func dropIndex() throws { try expect(unsafe documents_drop_index(store), "dropping an index by hand failed") }

    /// How many entries there are from a key on, 100 at most; their keys and ids are copied.
    func range(from key: String) throws -> Int {
        var count = 0
        let isFine = unsafe withUnsafeMutablePointer(to: &count) { count in
            unsafe documents_range(
                store, key, key.utf8.count, 100,
                { context, key, keyCount, id, idCount in
                    guard let context = unsafe context, let key = unsafe key, let id = unsafe id else { return }
                    let copies = unsafe (Data(bytes: key, count: keyCount), Data(bytes: id, count: idCount))
                    let isWhole = !copies.0.isEmpty && !copies.1.isEmpty
                    unsafe context.assumingMemoryBound(to: Int.self).pointee += isWhole ? 1 : 0
                }, count)
        }
        try expect(isFine, "reading a range by hand failed")
        return count
    }
}

private struct ByteSum { var count = 0 }

private func copyBody(
    context: UnsafeMutableRawPointer?, id: UnsafePointer<CChar>?, idCount: Int, body: UnsafeRawPointer?, count: Int
) {
    guard let context = unsafe context, let body = unsafe body else { return }
    unsafe context.assumingMemoryBound(to: Data.self).pointee = Data(bytes: body, count: count)
}

private func addBody(
    context: UnsafeMutableRawPointer?, id: UnsafePointer<CChar>?, idCount: Int, body: UnsafeRawPointer?, count: Int
) {
    guard let context = unsafe context, let body = unsafe body else { return }
    unsafe context.assumingMemoryBound(to: ByteSum.self).pointee.count += Data(bytes: body, count: count).count
}

/// The key of a body: its member `rank`.
private func makeKey(
    context: UnsafeMutableRawPointer?, body: UnsafeRawPointer?, count: Int, key: UnsafeMutablePointer<UInt8>?,
    limit: Int
) -> Int {
    guard let body = unsafe body, let key = unsafe key else { return 0 }
    let data = unsafe Data(bytesNoCopy: UnsafeMutableRawPointer(mutating: body), count: count, deallocator: .none)
    guard let object = try? JSONSerialization.jsonObject(with: data) as? [String: Any],
        let rank = object["rank"] as? String
    else { return 0 }
    let bytes = Array(rank.utf8.prefix(limit))
    for index in bytes.indices { unsafe key[index] = bytes[index] }
    return bytes.count
}
