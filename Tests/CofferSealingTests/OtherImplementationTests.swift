import Foundation
import TestSupport
import Testing

@testable import CofferSealing

/// Messages cross between Coffer and the decryptor and encryptor of PyPI's `cryptography`.
@Suite(
    "Another implementation of Cobblestone-256",
    .enabled(if: Python.hasCobblestone, "no Python with cryptography 50 or later; COFFER_PYTHON may name one"))
struct OtherImplementationTests {
    static let sizes = [0, 1, 16383, 16384, 16385, 2 * 16384, 2 * 16384 + 1, 1_000_003]
    let key: SymmetricKey
    let context = Array("coffer/v1/attachment\0".utf8)

    init() throws { key = try SymmetricKey() }

    @Test("Another implementation of Cobblestone-256 opens what is sealed here", arguments: sizes)
    func opensOurs(count: Int) throws {
        let plaintext = CobblestoneMessage.pattern(count)
        let message = try CobblestoneMessage.seal(plaintext, key: key, context: context)
        let opened = try Python.run("Decryptor", key: key, context: context, on: message)
        #expect(Content(opened.map { [UInt8]($0) }) == Content(plaintext))
        var changed = message
        changed[count / 2 + 56] ^= 1
        let refused = try Python.run("Decryptor", key: key, context: context, on: changed)
        #expect(refused == nil)
    }

    @Test("Another implementation of Cobblestone-256 seals what opens here", arguments: sizes)
    func sealsForUs(count: Int) throws {
        let plaintext = CobblestoneMessage.pattern(count)
        let message = try Python.run("Encryptor", key: key, context: context, on: plaintext)
        let outcome = try CobblestoneMessage.open([UInt8](message ?? Data()), key: key, context: context)
        #expect(outcome == .opened(plaintext))
    }
}

/// A Python that has `cryptography.cobblestone`, if there is any.
private enum Python {
    static let hasCobblestone = (try? start(["-c", "import cryptography.cobblestone"]).succeeds) ?? false

    /// What `cryptography`'s Cobblestone256Encryptor or …Decryptor makes of `input`; nil when it refuses.
    static func run(_ direction: String, key: SymmetricKey, context: [UInt8], on input: [UInt8]) throws -> Data? {
        let folder = FileManager.default.temporaryDirectory.appending(path: "coffer-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (from, to) = (folder.appending(path: "from"), folder.appending(path: "to"))
        try Data(input).write(to: from)
        let script = """
            import sys
            from cryptography.cobblestone import Cobblestone256\(direction)
            key, context, source, target = sys.argv[1:]
            worker = Cobblestone256\(direction)(bytes.fromhex(key), bytes.fromhex(context))
            result = worker.update(open(source, "rb").read()) + worker.finalize()
            open(target, "wb").write(result)
            """
        let keyHex = key.withBytes { Array($0) }.hex
        guard try start(["-c", script, keyHex, context.hex, from.path, to.path]).succeeds else { return nil }
        return try Data(contentsOf: to)
    }

    private static func start(_ arguments: [String]) throws -> Process {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        let python = ProcessInfo.processInfo.environment["COFFER_PYTHON"] ?? "python3"
        process.arguments = [python] + arguments
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }
}

extension Process {
    fileprivate var succeeds: Bool {
        waitUntilExit()
        return terminationStatus == 0
    }
}
