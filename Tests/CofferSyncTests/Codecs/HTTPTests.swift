import Foundation
import Testing

@testable import CofferSync

@Suite("Targets of requests") struct RequestTargetTests {
    @Test("Paths and queries of requests are decoded") func decoding() throws {
        let target = try #require(RequestTarget("/db/_design%2Fx/a%20b/?rev=1-a&open_revs=%5B%22x%22%5D&q=a+b&flag"))
        #expect(target.path == ["db", "_design/x", "a b"])
        #expect(target["rev"] == "1-a")
        #expect(target["open_revs"] == #"["x"]"#)
        #expect(target["q"] == "a b")
        #expect(target["flag"] == "")
        #expect(target["none"] == nil)
        #expect(RequestTarget("/")?.path == [])
    }

    @Test(
        "A request target that is not encoded is refused",
        arguments: ["", "db", "http://a/", "/%", "/%4", "/%zz", "/%ff", "/?a=%C3"])
    func refused(text: String) { #expect(RequestTarget(text) == nil) }

    @Test(
        "Any text survives being encoded in a request target",
        arguments: ["a", "../x", "a/b?c#d%e", "ü🙂 +&=", "\0\u{7F}"])
    func roundTrip(text: String) throws {
        let encoded = text.percentEncoded
        #expect(encoded.utf8.allSatisfy { (0x21..<0x7F).contains($0) && $0 != UInt8(ascii: "/") })
        #expect(encoded.percentDecoded() == text)
        #expect(try #require(RequestTarget("/\(encoded)?a=\(encoded)"))["a"] == text)
    }
}

@Suite("HTTP fields") struct HTTPFieldsTests {
    @Test("Names of HTTP fields are compared without regard to case") func names() {
        var fields: HTTPFields = ["Content-Type": "a", "set-cookie": "1", "Set-Cookie": "2"]
        #expect(fields["content-type"] == "a")
        #expect(fields.values(of: "SET-COOKIE") == ["1", "2"])
        fields["set-cookie"] = "3"
        #expect(fields.values(of: "Set-Cookie") == ["3"])
        #expect(
            HTTPFields(dictionaryLiteral: ("Accept", "a/b , Multipart/Mixed")).contains("multipart/mixed", in: "accept")
        )
    }
}

@Suite("Unpacking gzip") struct GzipTests {
    /// `printf %s hello | gzip -n`
    private static let hello = Data(base64Encoded: "H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==").map(Array.init) ?? []

    @Test("Packed bytes come out of gzip, however they come in", arguments: [1, 3, 100]) func pieces(count: Int)
        async throws
    {
        let pieces = stride(from: 0, to: Self.hello.count, by: count).map {
            Array(Self.hello[$0..<min($0 + count, Self.hello.count)])
        }
        #expect(try await stream(pieces).gunzipped().collect(upTo: 100) == Array("hello".utf8))
    }

    @Test("Gzip that is damaged, cut short or goes on is a 502") func garbage() async throws {
        var changed = Self.hello
        changed[changed.count - 6] ^= 1
        for bytes in [Array(Self.hello.dropLast()), changed, Self.hello + [0], Array("hello".utf8), []] {
            let error = await #expect(throws: SyncError.self) {
                try await ByteStream(bytes).gunzipped().collect(upTo: 100)
            }
            #expect(error?.status == 502)
        }
    }

    /// Three members, the second of nothing (RFC 1952, section 2.2).
    @Test("Gzip with several members is one content", arguments: [1, 30, 100]) func members(count: Int) async throws {
        let text = "H4sIAAAAAAAC/8tIzcnJVwAA9vmB7QYAAAAfiwgAAAAAAAL/AwAAAAAAAAAAAB+LCAAAAAAAAv8rzy/KSQEAQxF3OgUAAAA="
        let packed = try Array(#require(Data(base64Encoded: text)))
        func pieces(_ bytes: [UInt8]) -> [[UInt8]] {
            stride(from: 0, to: bytes.count, by: count).map { Array(bytes[$0..<min($0 + count, bytes.count)]) }
        }
        #expect(try await stream(pieces(packed)).gunzipped().collect(upTo: 100) == Array("hello world".utf8))
        // A million of nothing are no depth.
        let empty = Array(packed[26..<46])
        let many = Array(repeatElement(empty, count: 100_000).joined())
        #expect(try await ByteStream(many).gunzipped().collect(upTo: 100).isEmpty)
        for cut in [packed.count - 1, 46 + 5, 30] {
            await #expect(throws: SyncError.self) {
                try await stream(pieces(Array(packed[..<cut]))).gunzipped().collect(upTo: 100)
            }
        }
    }

    @Test("A little that unpacks to a lot is given out in pieces, and stops where the taker stops") func bomb()
        async throws
    {
        // 10 MiB of zeros, packed by zlib itself.
        let packed = try await output(of: "head -c 10485760 /dev/zero | gzip -n")
        #expect(packed.count < 20_000)
        let all = ByteStream(packed).gunzipped()
        var byteCount = 0
        while let piece = try await all.next() {
            #expect(piece.count <= 1 << 16)
            byteCount += piece.count
        }
        #expect(byteCount == 10_485_760)
        await #expect(throws: SyncError.self) {
            try await ByteStream(packed).gunzipped().collect(upTo: 1 << 20)
        }
    }
}
