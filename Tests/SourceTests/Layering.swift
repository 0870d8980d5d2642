/// Which target of the library may import which module.
///
/// The compiler does not keep this: a target sees every module that is reachable below it, declared or not.
struct Layering {
    /// The modules that every file of a target may import.
    let allowed: [String: Set<String>]

    /// The folders that may import a library of others beside those: the only ones that may.
    let fences: [String: Set<String>]

    /// The single files that may import more.
    let exceptions: [String: Set<String>]

    /// What `files` import against these rules.
    func findings(in files: [SourceFile]) -> [Finding] {
        files.flatMap { file in
            imports(of: file).compactMap { line, module in
                mayImport(module, in: file) ? nil : Finding(file, line: line, "\(module) may not be imported here")
            }
        }
    }

    private func mayImport(_ module: String, in file: SourceFile) -> Bool {
        allowed[file.target, default: []].contains(module)
            || exceptions[file.path, default: []].contains(module)
            || fences.contains { folder, libraries in libraries.contains(module) && file.path.hasPrefix(folder + "/") }
    }

    /// The exceptions that nothing in `files` uses any more.
    func unusedExceptions(in files: [SourceFile]) -> [String] {
        exceptions.flatMap { path, modules in
            let imported = files.filter { $0.path == path }.flatMap { imports(of: $0).map(\.module) }
            return modules.subtracting(imported).map { "\(path): \($0)" }
        }
    }

    /// The modules that `file` imports, with their lines: `import A`, `public import struct A.B`, `@_exported import A`.
    private func imports(of file: SourceFile) -> [(line: Int, module: String)] {
        file.numberedLines.compactMap { number, line in
            let words = line.split(whereSeparator: \.isWhitespace)
            guard let keyword = words.firstIndex(of: "import"),
                words[..<keyword].allSatisfy({ $0.hasPrefix("@") || Self.accessLevels.contains($0) }),
                let name = words[(keyword + 1)...].first(where: { !Self.kinds.contains($0) })
            else { return nil }
            return (number, String(name.prefix { $0 != "." }))
        }
    }

    private static let accessLevels: Set<Substring> = ["public", "package", "internal", "fileprivate", "private"]
    private static let kinds: Set<Substring> = [
        "struct", "class", "enum", "protocol", "func", "var", "let", "typealias",
    ]
}

extension Layering {
    /// The layers of Coffer, from the two C libraries up to the tool, which sees what every user of the library sees.
    static let ofCoffer = Layering(
        allowed: [
            "CofferSealing": system.union(["Dispatch"]),
            "CofferSQLite": system.union(["CofferSealing"]),
            "CofferVault": system.union(["CofferSealing", "Dispatch"]),
            "CofferModel": ["CofferSealing"],
            "CofferRecords": system.union([
                "CofferSealing", "CofferSQLite", "CofferVault", "CofferModel", "Foundation", "Dispatch",
            ]),
            "Coffer": system.union([
                "CofferSealing", "CofferVault", "CofferModel", "CofferRecords", "Foundation", "Dispatch",
            ]),
            "CofferKeys": system.union(["Coffer", "CofferSealing", "Foundation"]),
            "CofferMaintenance": system.union(["Coffer", "CofferModel", "CofferSealing", "Foundation"]),
            "CofferTesting": system.union(["Coffer", "CofferSealing", "CofferVault", "Foundation"]),
            "CofferGzip": ["CZlib"],
            "CofferCouchbaseLite": system.union([
                "Coffer", "CofferGzip", "CofferModel", "CofferSealing", "CofferSQLite", "CofferVault", "Foundation",
                "Dispatch",
            ]),
            "CofferSync": system.union(["Coffer", "CofferGzip", "CofferModel", "CofferSealing", "Foundation"]),
            "CofferLogging": ["Coffer", "Logging"],
            "CofferTool": system.union([
                "Coffer", "CofferCouchbaseLite", "CofferKeys", "CofferMaintenance", "CofferSync", "CofferTesting",
                "ArgumentParser", "Foundation", "Dispatch",
            ]),
        ],
        fences: [
            "Sources/CofferSealing/OpenSSL": ["COpenSSL"],
            "Sources/CofferSQLite/SQLCipher": ["CSQLCipher"],
            "Sources/CofferVault/FileSystem": ["CLinux"],
            "Sources/CofferKeys/System": ["CLinux"],
            "Sources/CofferSync/Network": [
                "AsyncHTTPClient", "NIOCore", "NIOFoundationCompat", "NIOHTTP1", "NIOPosix", "NIOSSL",
            ],
        ],
        exceptions: [
            // Normalization of what people type, and keys from their `Data`.
            "Sources/CofferSealing/Keys/SymmetricKey.swift": ["Foundation"],
            // Values of Foundation's as JSON, and memcmp.
            "Sources/CofferModel/Values/JSONConvertible+Foundation.swift": ["Foundation"],
            // Base64.
            "Sources/CofferModel/Values/Blob.swift": ["Foundation"],
            "Sources/CofferModel/Coding/TapeEncoder.swift": ["Foundation"],
            "Sources/CofferModel/Coding/BodyDecoder.swift": ["Foundation"],
            // Texts that are compared without accents, or in whatever composition.
            "Sources/CofferModel/Queries/TextPattern.swift": ["Foundation"],
            "Sources/CofferModel/Values/Bytes.swift": ["Glibc", "Darwin"],
            // What a view of SwiftUI follows.
            "Sources/Coffer/Queries/LiveQuery.swift": ["Observation"],
        ]
    )

    /// The C library of each system, and what the standard library keeps in modules of their own.
    private static let system: Set<String> = ["Darwin", "Glibc", "Synchronization"]
}
