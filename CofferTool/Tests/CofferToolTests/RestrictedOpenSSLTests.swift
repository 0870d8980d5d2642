import Foundation
import Testing

/// An OpenSSL that is set up to offer FIPS algorithms and has no FIPS provider offers none at all. Commands died of an illegal
/// instruction there.
@Suite("An OpenSSL without algorithms")
struct RestrictedOpenSSLTests {
    let work: Workspace

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        #expect(try work.coffer("create", "open.coffer", "--unencrypted").status == 0)
        try work.write(#"{"_id":"a","n":1}"#, to: "a.json")
        try work.write(
            """
            openssl_conf = init
            [init]
            providers = providers
            alg_section = properties
            [providers]
            default = default
            [default]
            activate = 1
            [properties]
            default_properties = fips=yes
            """, to: "restricted.cnf")
    }

    private func restricted(_ arguments: [String]) throws -> CofferProcess.Outcome {
        let configuration = work.folder.appending(path: "restricted.cnf").path(percentEncoded: false)
        return try CofferProcess.run(
            arguments, in: work.folder,
            .init(input: Data("content".utf8), environment: ["PATH": "/usr/bin:/bin", "OPENSSL_CONF": configuration]))
    }

    @Test(
        "An OpenSSL without the algorithms is a 501 and exit status 14 for every command, and changes nothing",
        arguments: [
            "create new.coffer --key raw+file:key", "create new.coffer --unencrypted", "key generate new",
            "get people.coffer a --key raw+file:key", "get open.coffer a", "ls open.coffer", "info people.coffer",
            "put open.coffer a", "import open.coffer a.json", "check people.coffer --key raw+file:key",
            "salvage open.coffer new.coffer", "rekey people.coffer --key raw+file:key --new-key raw+file:key",
            "key list people.coffer", "doctor .",
        ])
    func commands(line: String) throws {
        let before = try work.contents(of: "")
        let outcome = try restricted(line.split(separator: " ").map(String.init))
        #expect(outcome.status == 14, "\(outcome.errors)")
        #expect(outcome.errors.contains("OPENSSL_CONF"))
        #expect((outcome.errors + outcome.output).contains("OpenSSL can't do"))
        #expect(try work.contents(of: "") == before)
    }
}
