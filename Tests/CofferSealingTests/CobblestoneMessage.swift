import Testing

@testable import CofferSealing

/// Whole messages in memory, sealed and opened through the encryptor and the decryptor alone.
enum CobblestoneMessage {
    /// What opening a message comes to.
    enum Outcome: Equatable {
        case opened([UInt8])
        /// No message has this length.
        case wrongLength
        case wrongHeader
        /// The first chunk that doesn't open. All before it do, and hold `opened`.
        case wrongChunk(index: Int, opened: [UInt8])
    }

    /// Seals under a random salt, or under `salt`.
    static func seal(
        _ plaintext: [UInt8], key: SymmetricKey, context: [UInt8], salt: [UInt8]? = nil
    ) throws -> [UInt8] {
        var encryptor =
            if let salt { try CobblestoneEncryptor(key: key, context: context, salt: salt) } else {
                try CobblestoneEncryptor(key: key, context: context)
            }
        var message = encryptor.header
        var start = 0
        var isLast = false
        while !isLast {
            let end = min(start + Cobblestone.chunkByteCount, plaintext.count)
            isLast = end - start < Cobblestone.chunkByteCount
            message += try encryptor.seal(Array(plaintext[start..<end]), isLast: isLast)
            start = end
        }
        return message
    }

    /// Opens all of a message, from first to last: what a reader does that checks its length beforehand.
    static func open(_ message: [UInt8], key: SymmetricKey, context: [UInt8]) throws -> Outcome {
        guard Cobblestone.plaintextByteCount(ofMessage: message.count) != nil else { return .wrongLength }
        return try openChunks(of: message, key: key, context: context)
    }

    /// Opens chunk after chunk of what is there, whether or not a message can have this length.
    static func openChunks(of message: [UInt8], key: SymmetricKey, context: [UInt8]) throws -> Outcome {
        let header = Array(message.prefix(Cobblestone.headerByteCount))
        guard var decryptor = try CobblestoneDecryptor(key: key, context: context, header: header) else {
            return .wrongHeader
        }
        var plaintext: [UInt8] = []
        for index in 0...message.count / Cobblestone.sealedChunkByteCount {
            let sealed = chunk(index, of: message)
            guard let chunk = try decryptor.open(sealed, index: index) else {
                return .wrongChunk(index: index, opened: plaintext)
            }
            plaintext += chunk
            if chunk.count < Cobblestone.chunkByteCount { break }
        }
        return .opened(plaintext)
    }

    /// The bytes of chunk `index`, as far as there are any.
    static func chunk(_ index: Int, of message: [UInt8]) -> [UInt8] {
        let start = Cobblestone.headerByteCount + index * Cobblestone.sealedChunkByteCount
        return Array(message.dropFirst(start).prefix(Cobblestone.sealedChunkByteCount))
    }

    /// `count` bytes in which no two chunks are alike: those that Vectors/attachments/make.py takes too.
    static func pattern(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8 ^ $0 >> 16) }
    }
}

extension CobblestoneMessage.Outcome: CustomTestStringConvertible, CustomReflectable {
    /// As Vectors/attachments spells it.
    var name: String {
        switch self {
        case .opened: "opens"
        case .wrongLength: "wrongLength"
        case .wrongHeader: "wrongHeader"
        case .wrongChunk(let index, _): "wrongChunk \(index)"
        }
    }

    var testDescription: String { name }
    var customMirror: Mirror { Mirror(self, children: []) }
}

/// Many bytes to compare. A failed expectation takes minutes to show an array's, one by one.
struct Content: Equatable, CustomTestStringConvertible, CustomReflectable {
    private let bytes: [UInt8]?

    init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }
    init(_ bytes: [UInt8]?) { self.bytes = bytes }

    var testDescription: String { bytes.map { "\($0.count) bytes" } ?? "none" }
    var customMirror: Mirror { Mirror(self, children: []) }
}

extension CobblestoneEncryptor {
    mutating func seal(_ plaintext: [UInt8], isLast: Bool) throws -> [UInt8] {
        var sealed = [UInt8](repeating: 0xaa, count: plaintext.count + 16)
        try plaintext.withUnsafeBytes { plaintext in
            try sealed.withUnsafeMutableBytes { try seal(plaintext, isLast: isLast, into: $0) }
        }
        return sealed
    }
}

extension CobblestoneDecryptor {
    /// The plaintext of a chunk, or nil when it doesn't open; then none of it has been written.
    mutating func open(_ sealed: [UInt8], index: Int) throws -> [UInt8]? {
        var plaintext = [UInt8](repeating: 0xaa, count: max(0, sealed.count - 16))
        let isOpened = try sealed.withUnsafeBytes { sealed in
            try plaintext.withUnsafeMutableBytes { try open(sealed, index: index, into: $0) }
        }
        if isOpened { return plaintext }
        let left: UInt8 = (16...16400).contains(sealed.count) ? 0 : 0xaa
        let isClean = plaintext.allSatisfy { $0 == left }
        #expect(isClean, "something is left of a chunk that didn't open")
        return nil
    }
}
