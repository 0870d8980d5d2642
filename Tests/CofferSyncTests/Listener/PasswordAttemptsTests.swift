import CofferModel
import Foundation
import Testing

@testable import CofferSync

/// How often passwords are looked at.
@Suite("Attempts at passwords") struct PasswordAttemptsTests {
    private let start = ContinuousClock.now

    /// Tries wrong passwords whenever one is looked at, and says how many were in that time.
    private func attack(
        _ attempts: inout PasswordAttempts, from addresses: [String], for time: Duration
    ) -> Int {
        var (now, count) = (start, 0)
        while now < start + time {
            for address in addresses where attempts.pause(of: address, at: now) == nil {
                attempts.fail(address, at: now)
                count += 1
            }
            now += .seconds(1)
        }
        return count
    }

    @Test("Five wrong passwords are free, and after each further one the pause doubles, up to five minutes")
    func pauses() {
        var attempts = PasswordAttempts()
        var pauses: [Int64] = []
        for _ in 0..<16 {
            #expect(attempts.pause(of: "10.0.0.1", at: start + .seconds(pauses.reduce(0, +))) == nil)
            let now = start + .seconds(pauses.reduce(0, +))
            attempts.fail("10.0.0.1", at: now)
            pauses.append(attempts.pause(of: "10.0.0.1", at: now).map { $0.components.seconds } ?? 0)
        }
        #expect(pauses.prefix(10) == [0, 0, 0, 0, 1, 2, 4, 8, 16, 32])
        #expect(pauses.allSatisfy { $0 <= 300 })
        #expect(attempts.pause(of: "10.0.0.2", at: start) == nil)
    }

    @Test("An address can try few passwords in a day, even if it says a right one in between") func day() {
        var attempts = PasswordAttempts()
        #expect(attack(&attempts, from: ["10.0.0.1"], for: .seconds(86_400)) < 1_500)
        var between = PasswordAttempts()
        for second in 0..<60 {
            let now = start + .seconds(second)
            guard between.pause(of: "10.0.0.1", at: now) == nil else { continue }
            between.fail("10.0.0.1", at: now)
            between.succeed("10.0.0.1", at: now)
        }
        #expect(between.pause(of: "10.0.0.1", at: start + .seconds(36)) != nil)
    }

    @Test("Many addresses have a number of attempts in common, and lock out nobody who is known") func common() {
        var attempts = PasswordAttempts()
        attempts.succeed("192.0.2.1", at: start)
        let many = (0..<600).map { "10.0.\($0 / 256).\($0 % 256)" }
        #expect(attack(&attempts, from: many, for: .seconds(60)) <= 500 + 2 * 60)
        let end = start + .seconds(59)
        #expect(attempts.pause(of: "203.0.113.9", at: end) != nil)
        #expect(attempts.pause(of: "192.0.2.1", at: end) == nil)
        #expect(attempts.pause(of: "203.0.113.9", at: end + .seconds(60)) == nil)
    }

    @Test("The addresses of one network of version 6 count as one, and those of another don't") func networks() {
        var attempts = PasswordAttempts()
        for number in 0..<6 { attempts.fail("2001:db8:1:2::\(number + 1)", at: start) }
        #expect(attempts.pause(of: "2001:db8:1:2:3:4:5:6", at: start) != nil)
        #expect(attempts.pause(of: "2001:0db8:1:3::1", at: start) == nil)
        #expect(attempts.pause(of: "::1", at: start) == nil)
        for _ in 0..<6 { attempts.fail("::ffff:10.0.0.1", at: start) }
        #expect(attempts.pause(of: "10.0.0.1", at: start) != nil)
    }

    @Test("No more addresses of attempts are kept than have room, whoever comes") func bounded() {
        var attempts = PasswordAttempts()
        for number in 0..<6_000 {
            let address = "2001:db8:\(String(number / 256, radix: 16)):\(String(number % 256, radix: 16))::1"
            attempts.fail(address, at: start)
            if number % 2 == 0 { attempts.succeed(address, at: start + .seconds(number)) }
        }
        #expect(attempts.addressCount <= PasswordAttempts.addressLimit)
    }

    @Test("An address that tried too often has a 429 that says when, for right passwords too; sessions go on")
    func service()
        async throws
    {
        let seconds = Counter()
        let start = start
        let server = TestServer(
            { $0.access = .passwords(["robin": "s3cret"]) }, now: { start + .seconds(seconds.value) })
        _ = try server.database()
        func ask(_ password: String, from address: String, cookie: String? = nil) async throws -> TestServer.Answer {
            var request = HTTPRequest("GET", "/db")
            if let cookie {
                request.fields["Cookie"] = cookie
            } else {
                request.fields["Authorization"] = "Basic " + Data("robin:\(password)".utf8).base64EncodedString()
            }
            request.address = address
            return try await server.call(request)
        }
        func login(_ password: String, from address: String) async throws -> TestServer.Answer {
            var request = HTTPRequest(
                "POST", "/_session", body: .bytes(Array("name=robin&password=\(password)".utf8)))
            request.address = address
            return try await server.call(request)
        }
        let session = try await login("s3cret", from: "10.0.0.1")
        let cookie = String(try #require(session.fields["Set-Cookie"]).prefix { $0 != ";" })
        for number in 0..<5 {
            let isLogin = number % 2 == 1
            let answer = isLogin ? try await login("x", from: "10.0.0.1") : try await ask("x", from: "10.0.0.1")
            #expect(answer.status == 401)
        }
        for password in ["x", "s3cret"] {
            for answer in [try await ask(password, from: "10.0.0.1"), try await login(password, from: "10.0.0.1")] {
                #expect(answer.status == 429 && answer.json["error"] == "too_many_requests")
                #expect(answer.fields["Retry-After"].flatMap(Int.init) == 1)
            }
        }
        #expect(try await ask("", from: "10.0.0.1", cookie: cookie).status == 200)
        #expect(try await ask("s3cret", from: "10.0.0.2").status == 200)
        seconds.add(1)
        #expect(try await ask("s3cret", from: "10.0.0.1").status == 200)
    }
}
