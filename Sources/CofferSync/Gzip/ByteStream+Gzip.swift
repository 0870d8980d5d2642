internal import CofferGzip

extension GzipDecoder {
    /// The next decompressed bytes; nil if more compressed bytes are needed.
    ///
    /// - Throws: ``SyncError`` 502 if the input is not gzip.
    func nextPiece() throws(SyncError) -> [UInt8]? {
        do throws(NotGzip) {
            return try next()
        } catch {
            throw .garbage("a packed content that is not gzip")
        }
    }
}

extension ByteStream {
    /// The same bytes unpacked.
    ///
    /// - Throws: while it is read, ``SyncError`` 502 for what is not gzip, or ends before its end.
    package func gunzipped() -> ByteStream {
        let unpacker = Unpacker(self)
        return ByteStream { try await unpacker.next() }
    }

    private actor Unpacker {
        private let packed: ByteStream
        private let decoder = GzipDecoder()

        init(_ packed: ByteStream) { self.packed = packed }

        func next() async throws -> [UInt8]? {
            while true {
                if let piece = try unpacked() { return piece }
                guard let bytes = try await packed.next() else { return try end() }
                decoder.append(bytes)
            }
        }

        // Apart from what waits: inlined there, they crash the optimizer of Swift 6.3.

        @inline(never)
        private func unpacked() throws -> [UInt8]? { try decoder.nextPiece() }

        @inline(never)
        private func end() throws -> [UInt8]? {
            guard decoder.isOver else { throw SyncError.garbage("a packed content that ends before its end") }
            return nil
        }
    }
}
