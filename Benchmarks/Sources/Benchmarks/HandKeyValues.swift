internal import CByHand
internal import Foundation

/// Documents as nothing but the values of their ids, by hand: see KeyValues.h.
@safe final class HandKeyValues: DocumentsByHand {
    private let store: OpaquePointer

    init(new path: String, cacheByteCount: Int) throws {
        let key = HandDocuments.hexKey
        guard let store = unsafe key_values_new(path, key, Int32(cacheByteCount >> 10)) else {
            throw Failure("can't make a table of keys and values by hand")
        }
        unsafe self.store = store
    }

    deinit { unsafe key_values_free(store) }

    func transaction(_ body: () throws -> Void) throws {
        try expect(unsafe key_values_begin(store), "BEGIN by hand failed")
        try body()
        try expect(unsafe key_values_commit(store), "COMMIT by hand failed")
    }

    func insert(_ document: DocumentSet.Document) throws {
        try expect(unsafe document.write(to: store, key_values_insert), "inserting by hand failed")
    }

    func update(_ document: DocumentSet.Document) throws {
        try expect(unsafe document.write(to: store, key_values_update), "updating by hand failed")
    }

    func read(_ id: String) throws -> Int {
        var copied = Data()
        let isFine = unsafe withUnsafeMutablePointer(to: &copied) { copied in
            unsafe key_values_read(store, id, id.utf8.count, copyBody, copied)
        }
        try expect(isFine, "reading by hand failed")
        return copied.count
    }

    func readAll() throws -> Int {
        var sum = ByteSum()
        let isFine = unsafe withUnsafeMutablePointer(to: &sum) { sum in
            unsafe key_values_read_all(store, addBody, sum)
        }
        try expect(isFine, "reading by hand failed")
        return sum.count
    }
}
