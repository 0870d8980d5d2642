import CofferSealing

@testable import CofferSQLite

/// What is in the files of sealed pages, read without the VFS.
struct SealedBytes {
    static let page = SealedPageCodec.pageByteCount
    static let usable = SealedPageCodec.usableByteCount
    static let frame = SealedPageCodec.frameByteCount
    static let logStart = SealedPageCodec.logHeaderByteCount

    let image: SealedFixture.Image

    var pageCount: Int { image.file.count / Self.page }
    var log: [UInt8] { image.log ?? [] }
    var frameCount: Int { max(0, log.count - Self.logStart) / Self.frame }

    /// Where page `number` is, from 1.
    static func pageRange(_ number: Int) -> Range<Int> { (number - 1) * page..<number * page }

    /// Where frame `index` is, from 1.
    static func frameRange(_ index: Int) -> Range<Int> {
        logStart + (index - 1) * frame..<logStart + index * frame
    }

    func page(_ number: Int) -> [UInt8] { Array(image.file[Self.pageRange(number)]) }
    func frame(_ index: Int) -> [UInt8] { Array(log[Self.frameRange(index)]) }

    /// All messages by their nonces: pages, frames and the log's header, as far as there are any.
    var messages: [(nonce: [UInt8], message: [UInt8])] {
        let pages = (0..<pageCount).map { page($0 + 1) }
        let frames = (0..<frameCount).map { frame($0 + 1) }
        let isEmptied = log.count < Self.logStart || log.starts(with: Connection.emptiedLogHeader)
        let headers = isEmptied ? [] : [Array(log[..<Self.logStart])]
        return (pages + frames + headers).map { (Array($0.suffix(40).prefix(24)), $0) }
    }
}

extension SealedFixture {
    func codec() throws(CofferError) -> SealedPageCodec { try SealedPageCodec(key: key, binding: binding) }
}

/// A big-endian number of 32 bits.
func number(_ bytes: some Collection<UInt8>) -> UInt32 {
    bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
}
