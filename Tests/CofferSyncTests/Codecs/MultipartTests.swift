import Testing

@testable import CofferSync

@Suite("Multipart messages") struct MultipartTests {
    /// What CouchDB 3.5 answers to `open_revs`: one revision by itself, one with an attachment.
    private static let nested = [
        "--outer", "Content-Type: application/json", "", #"{"_id":"conf","_rev":"2-bbbb"}"#,
        "--outer", #"Content-Type: multipart/related; boundary="inner""#, "",
        "--inner", "Content-Type: application/json", "", #"{"_id":"conf","_rev":"2-cccc"}"#,
        "--inner", #"Content-Disposition: attachment; filename="t.txt""#, "Content-Length: 8", "", "con\r\nict",
        "--inner--", "--outer--",
    ].joined(separator: "\r\n")

    private func pieces(_ text: String, of count: Int) -> ByteStream {
        var rest = Array(text.utf8)[...]
        let pieces = stride(from: 0, to: rest.count, by: count).map { _ in
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
        return stream(pieces)
    }

    @Test("Nested multipart messages are read however their bytes come in", arguments: [1, 2, 3, 7, 16, 64, 100_000])
    func nested(pieceByteCount: Int) async throws {
        let outer = MultipartReader(pieces(Self.nested, of: pieceByteCount), boundary: "outer")
        let first = try #require(try await outer.nextPart())
        #expect(try await text(first.body) == #"{"_id":"conf","_rev":"2-bbbb"}"#)
        let second = try #require(try await outer.nextPart())
        let inner = try MultipartReader(second.body, fields: second.fields)
        #expect(try await inner.nextPart()?.fields["content-type"] == "application/json")
        let attachment = try #require(try await inner.nextPart())
        #expect(attachment.fields["Content-Disposition"].flatMap(MediaType.fileName) == "t.txt")
        #expect(try await text(attachment.body) == "con\r\nict")
        #expect(try await inner.nextPart() == nil)
        #expect(try await outer.nextPart() == nil)
        #expect(try await outer.nextPart() == nil)
    }

    @Test("A part of a message that isn't read is skipped, and its body ends then") func skipped() async throws {
        let reader = MultipartReader(pieces(Self.nested, of: 5), boundary: "outer")
        let first = try #require(try await reader.nextPart())
        let second = try #require(try await reader.nextPart())
        #expect(try await first.body.next() == nil)
        #expect(second.fields["Content-Type"]?.hasPrefix("multipart/related") == true)
        #expect(try await reader.nextPart() == nil)
    }

    @Test("Parts without header or body, a preamble and an epilogue are read") func corners() async throws {
        let text = "preamble\r\n--b  \r\n\r\nx\r\n--b\r\nA: 1\r\n\r\n--b\r\n\r\n\r\n--b--\r\nepilogue\r\n--b\r\n\r\nno"
        for count in [1, 4, 1000] {
            let reader = MultipartReader(pieces(text, of: count), boundary: "b")
            #expect(try await self.text(try #require(try await reader.nextPart()).body) == "x")
            let second = try #require(try await reader.nextPart())
            #expect(second.fields["a"] == "1")
            #expect(try await self.text(second.body) == "")
            #expect(try await self.text(try #require(try await reader.nextPart()).body) == "")
            #expect(try await reader.nextPart() == nil)
        }
    }

    @Test(
        "Bytes that are no multipart message are a 502",
        arguments: [
            "", "--b", "--b\r\n\r\nx", "--b\r\n\r\nx\r\n--b", "--b\r\nno colon\r\n\r\nx\r\n--b--",
            "--b\r\nContent-Length: 2\r\n\r\nx\r\n--b--", "--b\r\nContent-Length: 2\r\n\r\nxyz\r\n--b--",
            "--b\r\nContent-Length: -1\r\n\r\n\r\n--b--",
            "--b\r\nContent-Length: 99999999999999999999\r\n\r\n\r\n--b--",
            "--bxyz\r\n\r\nx\r\n--b--", "--b \(String(repeating: " ", count: 300))\r\n\r\nx\r\n--b--",
            String(repeating: "x", count: 20_000) + "\r\n--b\r\n\r\nx\r\n--b--",
            "--b\r\nX: \(String(repeating: "x", count: 20_000))\r\n\r\nx\r\n--b--",
        ])
    func garbage(text: String) async throws {
        for count in [1, 100, 100_000] {
            let reader = MultipartReader(pieces(text, of: count), boundary: "b")
            let error = await #expect(throws: SyncError.self) {
                while let part = try await reader.nextPart() { while try await part.body.next() != nil {} }
            }
            #expect(error?.status == 502)
        }
    }

    @Test("A header without an end takes no more memory than it may have") func endlessHeader() async throws {
        let taken = Counter()
        let endless = ByteStream {
            taken.add(1)
            return Array((taken.value == 1 ? "--b\r\nX: " : String(repeating: "x", count: 1024)).utf8)
        }
        let reader = MultipartReader(endless, boundary: "b")
        await #expect(throws: SyncError.self) { try await reader.nextPart() }
        #expect(taken.value < 40)
    }

    @Test("A multipart message that is written is read back, and is as long as it says") func roundTrip() async throws {
        let content = [UInt8]((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }) + Array("\r\n--".utf8)
        let message = MultipartBody([
            .init(["Content-Type": "application/json"], Array("{}".utf8)),
            .init([:], length: content.count) { stream([Array(content[..<10]), Array(content[10...])]) },
            .init(["Content-Length": "0"], []),
        ])
        let bytes = try await message.stream.collect(upTo: 1 << 20)
        #expect(bytes.count == message.length)
        let reader = MultipartReader(ByteStream(bytes), boundary: message.boundary)
        #expect(try await text(try #require(try await reader.nextPart()).body) == "{}")
        #expect(try await reader.nextPart()?.body.collect(upTo: 1 << 20) == content)
        #expect(try await text(try #require(try await reader.nextPart()).body) == "")
        #expect(try await reader.nextPart() == nil)
    }

    @Test("A content that isn't as long as was known of it ends the message with an error", arguments: [3, 5])
    func wrongLength(byteCount: Int) async throws {
        let message = MultipartBody([.init([:], length: 4) { ByteStream([UInt8](repeating: 0, count: byteCount)) }])
        await #expect(throws: SyncError.self) { try await message.stream.collect(upTo: 1000) }
    }

    private func text(_ stream: ByteStream) async throws -> String {
        String(decoding: try await stream.collect(upTo: 1 << 20), as: UTF8.self)
    }
}

@Suite("Media types") struct MediaTypeTests {
    @Test("Boundaries of a media type are found, in quotes and without") func boundaries() {
        #expect(MediaType(#"multipart/related; boundary="a b;c\"d""#)?.boundary == #"a b;c"d"#)
        #expect(MediaType("Multipart/Mixed;charset=x; BOUNDARY=abc")?.boundary == "abc")
        for text in [
            "application/json; boundary=abc", "multipart/mixed", "multipart/mixed; boundary=", "nonsense",
            "multipart/mixed; boundary=\"a\nb\"", "multipart/mixed; boundary=" + String(repeating: "a", count: 71),
        ] { #expect(MediaType(text)?.boundary == nil) }
    }

    @Test(
        "Any file name survives in a header, and none ends the field",
        arguments: ["a.txt", "../x", #"q"u\o;te"#, "ümläut 🙂", "; filename=x"])
    func fileNames(name: String) {
        #expect(MediaType.disposition(fileName: name).flatMap(MediaType.fileName) == name)
    }

    @Test("A file name that would end the line is left out") func lineEnds() {
        #expect(MediaType.disposition(fileName: "a\r\nX: y") == nil)
    }
}
