internal import ArgumentParser
internal import Coffer

struct KeyGenerateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "generate",
        abstract: "Make a new key: 32 random bytes in hex.",
        discussion: """
            The key is written to standard output, or into a new file that only its owner can read. --key \
            hex+file:FILE makes or opens a store with it.
            """
    )

    @Argument(help: "The file, which must not exist.", completion: .file())
    var file: String?

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    func run() throws {
        let console = Console(isJSON: json)
        let key = try SymmetricKey()
        if let file {
            try NewFile.write(Array((Self.hex(key) + "\n").utf8), to: file)
            if json {
                var line = JSONLine(type: "key")
                line.add("file", file)
                try console.printResult(line.finished)
            }
        } else if json {
            var line = JSONLine(type: "key")
            line.add("hex", Self.hex(key))
            try console.printResult(line.finished)
        } else {
            try console.printResult(Self.hex(key))
        }
        try console.flush()
    }

    private static func hex(_ key: SymmetricKey) -> String {
        unsafe key.withBytes { unsafe hexadecimal($0) }
    }
}
