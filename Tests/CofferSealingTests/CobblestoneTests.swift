import Testing

@testable import CofferSealing

@Suite("Cobblestone-256")
struct CobblestoneTests {
    let key: SymmetricKey
    let context = Array("coffer/v1/attachment\0".utf8)

    init() throws { key = try SymmetricKey() }

    static let sizes = [
        0, 1, 15, 16, 16383, 16384, 16385, 2 * 16384 - 1, 2 * 16384, 2 * 16384 + 1, 5 * 16384, 5 * 16384 + 7,
    ]

    @Test("Bytes that were sealed open, and have the length that the format says", arguments: sizes)
    func roundTrip(count: Int) throws {
        let plaintext = CobblestoneMessage.pattern(count)
        let message = try CobblestoneMessage.seal(plaintext, key: key, context: context)
        #expect(message.count == Cobblestone.messageByteCount(ofPlaintext: count))
        #expect(Cobblestone.plaintextByteCount(ofMessage: message.count) == count)
        let outcome = try CobblestoneMessage.open(message, key: key, context: context)
        #expect(outcome == .opened(plaintext))
    }

    @Test("Each length of a plaintext has its length of a message, and no message has another")
    func lengths() {
        var next = 0
        for plaintextByteCount in 0...3 * 16384 {
            let byteCount = Cobblestone.messageByteCount(ofPlaintext: plaintextByteCount)
            while next < byteCount {
                #expect(Cobblestone.plaintextByteCount(ofMessage: next) == nil, "\(next)")
                next += 1
            }
            #expect(Cobblestone.plaintextByteCount(ofMessage: byteCount) == plaintextByteCount)
            next = byteCount + 1
        }
        #expect(Cobblestone.messageByteCount(ofPlaintext: 0) == 72)
        #expect(Cobblestone.messageByteCount(ofPlaintext: 16383) == 56 + 16399)
        #expect(Cobblestone.messageByteCount(ofPlaintext: 16384) == 56 + 16400 + 16)
        #expect(Cobblestone.plaintextByteCount(ofMessage: -1) == nil)
        #expect(Cobblestone.plaintextByteCount(ofMessage: .min) == nil)
    }

    @Test("A sealed message has at most 2^38 chunks")
    func longest() throws {
        let longest = (1 << 52) - 1
        let byteCount = 56 + longest + (16 << 38)
        #expect(longest == (1 << 38) * 16384 - 1)
        #expect(Cobblestone.messageByteCount(ofPlaintext: longest) == byteCount)
        #expect(Cobblestone.plaintextByteCount(ofMessage: byteCount) == longest)
        for count in [byteCount + 1, byteCount + 16, byteCount + 17, byteCount + 16400, .max] {
            #expect(Cobblestone.plaintextByteCount(ofMessage: count) == nil)
        }

        let full = [UInt8](repeating: 1, count: 16384)
        for (index, plaintext, isLast, fits) in [
            ((1 << 38) - 2, full, false, true), ((1 << 38) - 1, full, false, false),
            ((1 << 38) - 1, [1], true, true), (1 << 38, [1], true, false),
        ] {
            var encryptor = try CobblestoneEncryptor(key: key, context: context)
            encryptor.nextIndex = index
            if fits {
                #expect(try encryptor.seal(plaintext, isLast: isLast).count == plaintext.count + 16)
            } else {
                do {
                    _ = try encryptor.seal(plaintext, isLast: isLast)
                    Issue.record("a chunk \(index) was sealed")
                } catch let error as CofferError {
                    #expect(error.code == .invalidAttachment && error.status == 400)
                }
            }
        }
    }

    @Test("Every sealed message has a header of its own, and a chunk opens under no other")
    func headers() throws {
        let messages = try (0..<50).map { _ in try CobblestoneMessage.seal([1, 2, 3], key: key, context: context) }
        #expect(Set(messages.map { $0.prefix(24) }).count == 50)
        #expect(Set(messages.map { $0[24..<56] }).count == 50)
        #expect(Set(messages.map { $0.dropFirst(56) }).count == 50)
        for message in messages.dropFirst() {
            let mixed = Array(messages[0].prefix(56) + message.dropFirst(56))
            #expect(
                try CobblestoneMessage.open(mixed, key: key, context: context) == .wrongChunk(index: 0, opened: []))
        }
    }

    @Test("A header is known under its key and context alone, and only whole")
    func otherKeys() throws {
        let header = try CobblestoneEncryptor(key: key, context: context).header
        #expect(header.count == 56)
        func opens(_ key: SymmetricKey, _ context: [UInt8], _ header: [UInt8]) throws -> Bool {
            switch try CobblestoneDecryptor(key: key, context: context, header: header) {
            case .some: true
            case nil: false
            }
        }
        #expect(try opens(key, context, header))
        for bit in 0..<256 {
            var bytes = key.withBytes { Array($0) }
            bytes[bit / 8] ^= 1 << (bit % 8)
            #expect(try !opens(SymmetricKey(data: bytes), context, header))
        }
        for bit in 0..<8 * context.count {
            var changed = context
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(try !opens(key, changed, header))
        }
        for changed in [[], context + [0], Array(context.dropLast()), [0] + context] {
            #expect(try !opens(key, changed, header))
        }
        for bit in 0..<8 * header.count {
            var changed = header
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(try !opens(key, context, changed))
        }
        for count in 0..<56 { #expect(try !opens(key, context, Array(header.prefix(count)))) }
        #expect(try !opens(key, context, header + [0]))
        #expect(drainOpenSSLErrors().isEmpty)
    }

    @Test("A password seals and opens nothing: 400")
    func passwords() throws {
        let password = SymmetricKey(password: String(repeating: "x", count: 32))
        let header = try CobblestoneEncryptor(key: key, context: context).header
        #expect(throws: CofferError(.invalidArgument)) {
            _ = try CobblestoneEncryptor(key: password, context: context).header
        }
        #expect(throws: CofferError(.invalidArgument)) {
            _ = try CobblestoneDecryptor(key: password, context: context, header: header) != nil
        }
    }

    @Test("The output of sealing and opening may start where the input does")
    func inPlace() throws {
        let plaintext = CobblestoneMessage.pattern(16384)
        var buffer = plaintext + [UInt8](repeating: 0xaa, count: 16 + 5)
        var encryptor = try CobblestoneEncryptor(key: key, context: context)
        try buffer.withUnsafeMutableBytes {
            try encryptor.seal(UnsafeRawBufferPointer(rebasing: $0[..<16384]), isLast: false, into: $0)
        }
        let sealed = Array(buffer.prefix(16400))
        guard var decryptor = try CobblestoneDecryptor(key: key, context: context, header: encryptor.header) else {
            Issue.record("its header is valid")
            return
        }
        #expect(try Content(decryptor.open(sealed, index: 0)) == Content(plaintext))
        for index in [1, 0] {
            let isOpened = try buffer.withUnsafeMutableBytes {
                try decryptor.open(UnsafeRawBufferPointer(rebasing: $0[..<16400]), index: index, into: $0)
            }
            #expect(isOpened == (index == 0))
            let left = isOpened ? plaintext : [UInt8](repeating: 0, count: 16384)
            #expect(Content(buffer.prefix(16384)) == Content(left))
            #expect(buffer.suffix(5) == [0xaa, 0xaa, 0xaa, 0xaa, 0xaa], "beyond the chunk nothing is written")
            buffer.replaceSubrange(..<16400, with: sealed)
        }
    }

    @Test("A chunk that comes in another order than it can ends the process")
    func misuse() async {
        await #expect(processExitsWith: .failure, "after the last") {
            var encryptor = try CobblestoneEncryptor(key: SymmetricKey(), context: [])
            _ = try encryptor.seal([1], isLast: true)
            _ = try? encryptor.seal([1], isLast: true)
        }
        await #expect(processExitsWith: .failure, "a short one that isn't the last") {
            var encryptor = try CobblestoneEncryptor(key: SymmetricKey(), context: [])
            _ = try? encryptor.seal([UInt8](repeating: 1, count: 16383), isLast: false)
        }
        await #expect(processExitsWith: .failure, "a full one that is the last") {
            var encryptor = try CobblestoneEncryptor(key: SymmetricKey(), context: [])
            _ = try? encryptor.seal([UInt8](repeating: 1, count: 16384), isLast: true)
        }
        await #expect(processExitsWith: .failure, "one more after an error") {
            var encryptor = try CobblestoneEncryptor(key: SymmetricKey(), context: [])
            encryptor.nextIndex = 1 << 38
            _ = try? encryptor.seal([1], isLast: true)
            encryptor.nextIndex = 0
            _ = try? encryptor.seal([1], isLast: true)
        }
        await #expect(processExitsWith: .failure, "an index that no message has") {
            let key = try SymmetricKey()
            let header = try CobblestoneEncryptor(key: key, context: []).header
            guard var decryptor = try CobblestoneDecryptor(key: key, context: [], header: header) else { return }
            _ = try? decryptor.open([UInt8](repeating: 0, count: 16), index: 1 << 38)
        }
    }
}
