import Coffer
import CofferSealing
import CofferTesting
import Testing

@testable import CofferSync

@Suite("Keys that the app finds when a listener asks for them")
struct ServedKeyTests {
    private struct Unavailable: Error {}

    @Test(
        "A key that can't be had is a 503 without the reason, or the app's own error, and the next request asks again")
    func unavailableKey() async throws {
        let failures = Lock<[any Error]>([Unavailable(), SyncError(507, "no key fits")])
        let server = TestServer {
            $0.encryptionKey = { _ in
                await Task.yield()
                if let failure = failures.withLock({ $0.popLast() }) { throw failure }
                return TestServer.key
            }
        }
        try await server.database().close()
        let own = try await server.call("GET", "/db")
        #expect(own.status == 507 && own.text.contains("no key fits"))
        let refused = try await server.call("GET", "/db")
        #expect(refused.status == 503 && refused.fields["Retry-After"] == "1")
        #expect(refused.json["reason"] == "the key of this database can't be had")
        #expect(try await server.call("GET", "/db").status == 200)
    }

    @Test("A database isn't made while its key can't be had")
    func notMade() async throws {
        let server = TestServer { $0.encryptionKey = { _ in throw Unavailable() } }
        #expect(try await server.call("PUT", "/db").status == 503)
        #expect(try server.stores.manager.allDatabaseNames == [])
    }

    @Test("The app is asked once for the key of a database that is there, and never for one that is not")
    func askedForWhatIsThere() async throws {
        let asked = Lock<[String]>([])
        let server = TestServer {
            $0.encryptionKey = { name in
                asked.withLock { $0.append(name) }
                return TestServer.key
            }
        }
        try await server.database().close()
        for target in ["/missing", "/missing/doc", "/_Missing", "/db", "/db/_all_docs"] {
            _ = try await server.call("GET", target)
        }
        #expect(asked.withLock { $0 } == ["db"])
    }
}
