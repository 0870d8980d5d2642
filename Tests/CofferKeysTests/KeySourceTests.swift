import Foundation
import Testing

@_spi(Tool) @testable import CofferKeys

@Suite("Naming the source of a key")
struct KeySourceTests {
    @Test(
        "A key source is named by its kind and what it is called there",
        arguments: [
            ("stdin", KeySource.Origin.standardInput), ("file:k", .file("k")), ("file:a:b+c", .file("a:b+c")),
            ("env:KEY", .environment("KEY")), ("fd:3", .descriptor(3)), ("fd:0", .descriptor(0)),
            ("cmd:echo a:b", .command("echo a:b")), ("credential:coffer", .credential("coffer")),
            ("keyring:coffer:people", .keyring("coffer:people")),
        ])
    func origins(text: String, origin: KeySource.Origin) throws {
        #expect(try KeySource(parsing: text) == KeySource(origin: origin, encoding: .password))
        #expect(try KeySource(parsing: "hex+" + text) == KeySource(origin: origin, encoding: .hex))
        #expect(try KeySource(parsing: "base64+" + text) == KeySource(origin: origin, encoding: .base64))
        #expect(try KeySource(parsing: "raw+" + text) == KeySource(origin: origin, encoding: .raw))
    }

    @Test("Key sources that code names are those that text names")
    func factories() throws {
        let pairs: [(KeySource, String)] = [
            (.file("k", as: .raw), "raw+file:k"), (.environment("K"), "env:K"), (.descriptor(5, as: .hex), "hex+fd:5"),
            (.standardInput(), "stdin"), (.command("true"), "cmd:true"), (.credential("k"), "credential:k"),
            (.keyring("k", as: .base64), "base64+keyring:k"),
        ]
        for (source, text) in pairs { #expect(try source == KeySource(parsing: text), "\(text)") }
    }

    @Test(
        "A text that names no key source is refused without being repeated",
        arguments: [
            "", "hunter2", "pass:hunter2", "file:", "file", "env:", "cmd:", "fd:", "fd:1", "fd:2", "fd:-1", "fd:x",
            "fd:3x", "prompt", "stdin:hunter2", "hex+hex+stdin", "Hex+stdin", "b64+stdin", "hex+", "hex+hunter2",
            "file hunter2", " stdin", "credential:", "keyring:", "file:a\u{0}hunter2",
        ])
    func refusals(text: String) {
        let error = #expect(throws: KeySourceError.self) { try KeySource(parsing: text) }
        #expect(error?.localizedDescription == error?.description)
        #expect(error?.code == .invalidSource && error?.status == 400)
        #expect(error.map { "\($0)".contains("hunter2") } == false)
    }

    @Test("A key source describes itself by its kind alone")
    func descriptions() throws {
        for text in ["file:hunter2", "env:hunter2", "cmd:hunter2", "credential:hunter2", "keyring:hunter2"] {
            let source = try KeySource(parsing: text)
            #expect(!"\(source)".contains("hunter2") && !String(describing: source).isEmpty)
        }
    }
}
