import Coffer
import CofferModel
import CofferSealing
import Foundation
import Testing

@testable import CofferSync

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// FIPS providers have no MD5, which CouchDB names contents by. A process ended at the first of them.
@Suite("OpenSSL without MD5") struct MissingDigestTests {
    @Test("Without MD5 a pull misses the contents that are known by their MD5 alone, says so, and brings all else")
    func withoutMD5() async {
        await #expect(processExitsWith: .success) {
            try takeMD5Away()
            let peers = try Peers()
            let (database, remote) = (try peers.database(), try peers.remote)
            let (ours, theirs) = (Data("known by its SHA-1".utf8), Data("known by its MD5".utf8))
            try remote.write("doc", ["n": 1])
            try remote.write("ours", ["n": 1], attachment: ("a.txt", ours))
            try remote.write("theirs", ["n": 1], attachment: ("b.txt", theirs))
            let digest = "sha1-" + Data(try Digest.sha1(of: Array(theirs))).base64EncodedString()
            let couch = InterceptingTransport(peers.server) { request, _, inner in
                let response = try await inner.send(request)
                guard response.fields["Content-Type"] == "application/json" else { return response }
                let text = String(decoding: try await response.body.stream.collect(upTo: 1 << 20), as: UTF8.self)
                    .replacing(digest, with: "md5-lEGCTDm3jdGSuD8JqIqOpA==")
                return HTTPResponse(response.status, fields: response.fields, body: .bytes(Array(text.utf8)))
            }
            let pull = try peers.replication(.pull, database, through: couch)
            try await pull.run()
            let failure = try #require(pull.failures.first)
            #expect(pull.failures.count == 1 && failure.documentID == "theirs")
            #expect((failure.error as? SyncError)?.status == 501)
            #expect((failure.error as? SyncError)?.subject == "attachment b.txt of document theirs")
            #expect(try database["doc"] != nil && database["theirs"] == nil)
            #expect(try database["ours"]?.currentRevision?.attachment(named: "a.txt")?.content == ours)
        }
    }
}

/// Has this process find out that OpenSSL offers no MD5, which it does once, while it is set up to offer nothing at all.
private func takeMD5Away() throws {
    typealias SetProperties = @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> Int32
    let symbol = try #require(dlsym(dlopen(nil, RTLD_NOW), "EVP_set_default_properties"))
    let setProperties = unsafeBitCast(symbol, to: SetProperties.self)
    #expect(setProperties(nil, "fips=yes") == 1)
    #expect(throws: CofferError(.encryptionUnavailable)) { _ = try StreamingDigest(.md5).algorithm }
    #expect(setProperties(nil, "") == 1)
    #expect(throws: CofferError(.encryptionUnavailable)) { _ = try StreamingDigest(.md5).algorithm }
}
