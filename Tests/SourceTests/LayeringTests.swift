import Testing

@Suite("Each target imports only what its layer may")
struct LayeringTests {
    let files: [SourceFile]

    init() throws {
        files = try ["Sources", "CofferTool/Sources"].flatMap {
            try Repository.files(in: $0, withExtensions: ["swift"])
        }
    }

    @Test("No source imports a module that its layer may not see")
    func imports() {
        #expect(Set(files.map(\.target)).isSuperset(of: Layering.ofCoffer.allowed.keys))
        let findings = Layering.ofCoffer.findings(in: files)
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test("Every exception to the layers is one that something needs")
    func noStaleExceptions() {
        let unused = Layering.ofCoffer.unusedExceptions(in: files)
        #expect(unused.isEmpty, "\(unused)")
    }

    @Test(
        "A source outside its layer is found",
        arguments: [
            ("CofferSQLite/Statement.swift", "import CSQLCipher"),
            ("CofferSealing/Scrypt.swift", "internal import COpenSSL"),
            ("CofferVault/Lock.swift", "import CSQLCipher"),
            ("CofferVault/Lock.swift", "package import CofferSQLite"),
            ("CofferModel/JSON.swift", "import struct CofferVault.Manifest"),
            ("CofferModel/JSON.swift", "import Glibc"),
            ("CofferModel/JSON.swift", "import Foundation"),
            ("Coffer/Manager.swift", "@preconcurrency internal import COpenSSL"),
            ("Coffer/Manager.swift", "@_exported public import class CSQLCipher.Thing"),
            ("Coffer/Manager.swift", "    import ArgumentParser"),
            ("CofferTool/GetCommand.swift", "import CofferVault"),
            ("Elsewhere/File.swift", "import Coffer"),
        ])
    func control(path: String, text: String) {
        let file = SourceFile(path: "Sources/" + path, text: "// A comment that says import Coffer\n" + text + "\n")
        let findings = Layering.ofCoffer.findings(in: [file])
        #expect(findings.map(\.place) == [file.path + ":2"])
    }

    @Test("A source inside its layer is not, and an exception without a use is")
    func negativeControl() {
        let rules = Layering(
            allowed: ["Upper": ["Lower"]],
            fences: ["Sources/Upper/C": ["CLibrary"]],
            exceptions: ["Sources/Upper/Dates.swift": ["Foundation", "Unused"]])
        let good = [
            SourceFile(
                path: "Sources/Upper/File.swift", text: "import Lower\n// import Other\nlet text = \"import X\""),
            SourceFile(path: "Sources/Upper/C/File.swift", text: "internal import CLibrary"),
            SourceFile(path: "Sources/Upper/Dates.swift", text: "public import struct Foundation.Date"),
        ]
        #expect(rules.findings(in: good).isEmpty)
        #expect(rules.unusedExceptions(in: good) == ["Sources/Upper/Dates.swift: Unused"])
    }
}
