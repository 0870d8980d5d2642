import Coffer
import CofferKeys
import Foundation
import Testing

/// Against keyctl(1), whose keys these are.
@Suite("Keys of the kernel's keyrings", .enabled(if: Keyctl.isAvailable, "needs keyutils, and a kernel that lets us"))
struct KeyringTests {
    @Test("A key that keyctl has put into the user's keyring is read, up to its last byte, until it is revoked")
    func user() throws {
        let name = "coffer-test-\(UUID())"
        let bytes = Data((0..<32).map { UInt8($0) })
        let number = try Keyctl.run("padd", "user", name, "@u", input: bytes)
        defer { _ = try? Keyctl.run("unlink", number, "@u") }
        #expect(try SymmetricKey(from: .keyring(name, as: .raw)) == SymmetricKey(data: bytes))
        #expect(throws: KeySourceError.self) { try SymmetricKey(from: .keyring(name + "-other", as: .raw)) }
        _ = try Keyctl.run("revoke", number)
        let error = #expect(throws: KeySourceError.self) { try SymmetricKey(from: .keyring(name, as: .raw)) }
        #expect(error?.code == .unavailable)
        #expect(error?.message.contains(name) == false)
    }

    @Test("A password and a key in hex are read from the keyring as from any source")
    func encodings() throws {
        let name = "coffer-test-\(UUID())"
        for (text, source, key) in [
            ("a password\n", KeySource.keyring(name), SymmetricKey(password: "a password")),
            (
                String(repeating: "0a", count: 32), .keyring(name, as: .hex),
                try SymmetricKey(data: Data(repeating: 10, count: 32))
            ),
        ] {
            let number = try Keyctl.run("padd", "user", name, "@u", input: Data(text.utf8))
            defer { _ = try? Keyctl.run("unlink", number, "@u") }
            #expect(try SymmetricKey(from: source) == key)
        }
    }
}

enum Keyctl {
    static let isAvailable: Bool = {
        guard FileManager.default.isExecutableFile(atPath: "/bin/keyctl") else { return false }
        guard let number = try? run("padd", "user", "coffer-test-first", "@u", input: Data("x".utf8)) else {
            return false
        }
        return (try? run("unlink", number, "@u")) != nil
    }()

    static func run(_ arguments: String..., input: Data = Data()) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/keyctl")
        process.arguments = arguments
        let (inputPipe, output) = (Pipe(), Pipe())
        process.standardInput = inputPipe
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        try inputPipe.fileHandleForWriting.write(contentsOf: input)
        try inputPipe.fileHandleForWriting.close()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CocoaError(.executableLoad) }
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
