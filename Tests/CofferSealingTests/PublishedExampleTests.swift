import TestSupport
import Testing

@testable import CofferSealing

/// Examples of what no RFC has examples of, as figures: from the vectors that C2SP publishes in github.com/C2SP/wycheproof at dac1dd4,
/// whose numbers are in the comments. All of those are tried where their files are.
@Suite("Published examples hold")
struct PublishedExampleTests {
    struct Stretching {
        let password: String, salt: String, key: String
    }

    /// Tests 1 and 3 of pbkdf2_hmacsha512_test.json, with 4,096 iterations. The second key goes on behind the first block.
    static let pbkdf2Examples: [Stretching] = [
        Stretching(
            password: "7130577430643470", salt: "798acc7c76739d75", key: "4935390897319c3efc15d19304109c79"),
        Stretching(
            password: "7439315572766f47", salt: "5d76db9ca0f0bae2",
            key: "a5d7f0fe4adc54e2ac5edc54e005827a90cbd46c00b72be68f8fbd1da98c079b98622a69b1ea44c0"
                + "d94cdae03c339b742d047ac63cac0d9af59786baee4a158080"),
    ]

    @Test("Published examples of PBKDF2-HMAC-SHA-512 hold", arguments: pbkdf2Examples)
    func pbkdf2(example: Stretching) throws {
        let (password, salt) = (try bytes(example.password), try bytes(example.salt))
        let expected = try bytes(example.key)
        let key = try password.withBytes { (password) throws(CofferError) in
            try PasswordHashing.pbkdf2SHA512(password, salt: salt, iterations: 4_096, byteCount: expected.count)
        }
        #expect(key.array == expected)
    }

    struct Expansion {
        let key: String, salt: String, info: String, derived: String
    }

    /// Tests 2 and 12 of hkdf_sha512_test.json.
    static let hkdfExamples: [Expansion] = [
        Expansion(
            key: "a23632e18ec76b59b1c87008da3f8a7e", salt: "", info: "",
            derived: "c4af93d4bae9ca2b45f590cd3d2f539ff5749d7b0864fbe44a438d38a2f8e5afe01641145e389c989766"),
        Expansion(
            key: "7a00817689a3d79001825a864c69c120", salt: "08bc01c053a6406c7c4a667c9b9b3894",
            info: "967ccd75395be6e96a67759f070487c9e2107791",
            derived: "aed987bcc5ed33c4feec7b28aa9fe1c16b1181e00ff42c63cf692ec19242f6d4628604b3382db080"
                + "6d5e61518f83fc651e6f3bd0a9d1322926a76869b98b75d6"),
    ]

    @Test("Published examples of the expand step of HKDF-SHA-512 hold", arguments: hkdfExamples)
    func hkdf(example: Expansion) throws {
        let expected = try bytes(example.derived)
        let extracted = try #require(SystemLibraries.hmacSHA512(bytes(example.key), key: bytes(example.salt)))
        let info = try bytes(example.info)
        let derived = try extracted.withBytes { (extracted) throws(CofferError) in
            try HKDF.expandSHA512(extracted, info: info, byteCount: expected.count)
        }
        #expect(derived.array == expected)
    }

    struct Message {
        let context: String, bytes: String, outcome: CobblestoneMessage.Outcome
    }

    /// c2sp_chunked_encryption_aes_256_gcm_test.json: the valid ones of one chunk, tests 1, 2, 9 and 10; one with a flipped bit, 11;
    /// shorter than a tag, 17; with a changed commitment, 21; under another context, 25.
    static let messages: [Message] = [
        Message(
            context: "",
            bytes: "43a2e39431cbae0389d3fc86adf46f7c3a24de88d9311617e53f3164cc1d5dc738a66b97f0bf7865"
                + "65c31799c2f463d50a7e10046011dc6fc3c939e3a5db7affb6191551669554fb",
            outcome: .opened([])),
        Message(
            context: "",
            bytes: "a1a1b56f6db58cd1ede0c5c9db62aef20d3f96a6c594bb9252bb38122de91236502b42a1d7fcab82"
                + "0ffa292940d2f86add212cfa42c38df19d3cc9139ee61a5990d3db57433514229beea49a8a72bd",
            outcome: .opened(Array("chunked".utf8))),
        Message(
            context: "test context",
            bytes: "dbedaefc1c35dc6c0f22b743b03e488747166a51f33479e7ceb8b7e11cc0d2710f624a127501bc4a"
                + "ea7d0af6f83cfe359b9e69415aa537f36adf86eb35b070475baa039bb7791432adbca49578bbd3",
            outcome: .opened(Array("chunked".utf8))),
        Message(
            context: "test\0context",
            bytes: "12ede102c3ef730da4f3d4dbfaf11003683238315befe73b21ebb2246ac19f3a7d50abd2a5a365f7"
                + "652bda670814dbc883ce618256d2d513bd238c2c0dded7614d52bef77bc04273656df97a294323",
            outcome: .opened(Array("chunked".utf8))),
        Message(
            context: "",
            bytes: "0093274a932cb4340ca678d500719d80ccc21f69c49586a8cae519f1ae94a13a97038610177fe840"
                + "ac755f6604849272444b0de559508a2a00538b8dd8cc3a83e14df1343fa14630a2",
            outcome: .wrongChunk(index: 0, opened: [])),
        Message(
            context: "",
            bytes: "679551dfcc4221c2c5f3dfcff2f94fcd7df0dc5d0dac8ceb294cda58ffffbe199532a141b16102b6"
                + "9550faa5e1315a3c823e58b9e3141839e1fd278b80a7dabc12eaa4ed",
            outcome: .wrongLength),
        Message(
            context: "",
            bytes: "a7bf214ab87afe86ae30940aba6d25aa92d1c26a7c4de03ece1f5f63bd31ca5d9517ce97effb9ce6"
                + "2c4f01433335d070ca3de6243f4cb67a00a4deb622c6b80140d1c88f54ade32fdc",
            outcome: .wrongHeader),
        Message(
            context: "wrong context",
            bytes: "36201844cafc0e596bec8782c560b7b1d065b90a94d227007f07a7185f0c1f449310232a0ff1d566"
                + "7ece42aff4e7c0359df78ece43b312d50034c80236b5c7900f7eebe540d242b8eb",
            outcome: .wrongHeader),
    ]

    @Test(
        "Published messages of Cobblestone-256 open, are sealed again to the same, or are refused", arguments: messages)
    func cobblestone(message: Message) throws {
        let key = try SymmetricKey(data: Array("YELLOW SUBMARINE YELLOW SUBMARIN".utf8))
        let (sealed, context) = (try bytes(message.bytes), Array(message.context.utf8))
        #expect(try CobblestoneMessage.open(sealed, key: key, context: context) == message.outcome)
        if case .opened(let plaintext) = message.outcome {
            let salt = Array(sealed.prefix(24))
            #expect(try CobblestoneMessage.seal(plaintext, key: key, context: context, salt: salt) == sealed)
        }
    }

    private func bytes(_ hex: String) throws -> [UInt8] { try #require([UInt8](hex: hex)) }
}
