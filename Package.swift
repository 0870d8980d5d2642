// swift-tools-version: 6.2
import PackageDescription

// Swift 6 mode comes from the tools version. `unsafe` marks every expression that can break memory safety.
let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    // Values that can't be kept for longer than what they were read from.
    .enableExperimentalFeature("Lifetimes"),
]
let testing: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "coffer",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "Coffer", targets: ["Coffer"]),
        .library(name: "CofferKeys", targets: ["CofferKeys"]),
        .library(name: "CofferMaintenance", targets: ["CofferMaintenance"]),
        .library(name: "CofferTesting", targets: ["CofferTesting"]),
        .library(name: "CofferCouchbaseLite", targets: ["CofferCouchbaseLite"]),
        .library(name: "CofferSync", targets: ["CofferSync"]),
        .library(name: "CofferLogging", targets: ["CofferLogging"]),
    ],
    traits: [
        .trait(
            name: "Sync",
            description: "Replication over the network: lets CofferSync use SwiftNIO. Without it nothing is fetched."),
        .trait(
            name: "SwiftLog",
            description: "Logging with swift-log: lets CofferLogging use it. Without it nothing is fetched."),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        // Level 0: the two C libraries and nothing else.
        .systemLibrary(
            name: "COpenSSL",
            pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]
        ),
        .target(
            name: "CSQLCipher",
            dependencies: ["COpenSSL"],
            linkerSettings: [
                .linkedLibrary("dl", .when(platforms: [.linux])),
                .linkedLibrary("sqlcipher", .when(platforms: [.macOS])),
            ]
        ),

        // Level 0 too, a header alone: the Linux calls that Swift's Glibc module leaves out.
        .systemLibrary(name: "CLinux"),

        // Level 1: the only importers of level 0.
        .target(name: "CofferSealing", dependencies: ["COpenSSL"], swiftSettings: strict),
        .target(name: "CofferSQLite", dependencies: ["CSQLCipher", "CofferSealing"], swiftSettings: strict),

        // Level 2: files, keys and generations; pure values without I/O.
        .target(name: "CofferVault", dependencies: ["CLinux", "CofferSealing"], swiftSettings: strict),
        .target(name: "CofferModel", dependencies: ["CofferSealing"], swiftSettings: strict),

        // Level 3: what the database file holds, in rows and statements.
        .target(
            name: "CofferRecords",
            dependencies: ["CofferModel", "CofferSQLite", "CofferSealing", "CofferVault"], swiftSettings: strict),

        // Level 4: the public library.
        .target(
            name: "Coffer",
            dependencies: ["CofferRecords", "CofferSealing", "CofferVault", "CofferModel"],
            swiftSettings: strict
        ),

        // Level 5: what an app's tests need to prove its own use of encryption.
        .target(
            name: "CofferTesting", dependencies: ["Coffer", "CofferSealing", "CofferVault"], swiftSettings: strict),

        // Level 5 as well: where an app's keys come from.
        .target(name: "CofferKeys", dependencies: ["CLinux", "Coffer", "CofferSealing"], swiftSettings: strict),

        // Level 5 as well: work on stores that another process has open, from either side.
        .target(
            name: "CofferMaintenance", dependencies: ["Coffer", "CofferModel", "CofferSealing"], swiftSettings: strict),

        // Levels 0 and 1: decompression, for what other databases and clients compress.
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
        .target(name: "CofferGzip", dependencies: ["CZlib"], swiftSettings: strict),

        // Level 5 as well: importing the stores of Couchbase Lite 1.x.
        .target(
            name: "CofferCouchbaseLite",
            dependencies: ["Coffer", "CofferGzip", "CofferModel", "CofferSQLite", "CofferSealing", "CofferVault"],
            swiftSettings: strict),

        // Level 5 too: replication with CouchDB and what speaks like it. All but the network works without the trait.
        .target(
            name: "CofferSync",
            dependencies: [
                "Coffer", "CofferGzip", "CofferModel", "CofferSealing",
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: .when(traits: ["Sync"])),
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Sync"])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["Sync"])),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["Sync"])),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["Sync"])),
            ],
            swiftSettings: strict
        ),

        // Level 5 as well: messages of the core for swift-log, which is the trait's.
        .target(
            name: "CofferLogging",
            dependencies: [
                "Coffer", .product(name: "Logging", package: "swift-log", condition: .when(traits: ["SwiftLog"])),
            ],
            swiftSettings: strict
        ),

        // Two stores, a server between them, and a conflict. Here, where its dependencies are built anyway, and no product.
        .executableTarget(
            name: "TwoStores", dependencies: ["Coffer", "CofferSync"], path: "Examples/TwoStores",
            swiftSettings: testing),

        // What the tests of several targets share: numbers of a seed, and waits that end.
        .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: testing),

        // And a file system that counts, fails and forgets.
        .target(
            name: "CofferFaults", dependencies: ["CofferSealing", "CofferVault"], path: "Tests/CofferFaults",
            swiftSettings: testing),

        // And files beneath SQLite that fail, and remember what was synced.
        .target(name: "CFaultyFiles", dependencies: ["COpenSSL", "CSQLCipher"], path: "Tests/CFaultyFiles"),

        // Looks for secrets in the memory of a process.
        .target(
            name: "MemorySearch", dependencies: ["CofferSealing"], path: "Tests/MemorySearch", swiftSettings: testing),

        .testTarget(
            name: "CofferSealingTests", dependencies: ["CofferSealing", "MemorySearch", "TestSupport"],
            swiftSettings: testing),
        .testTarget(
            name: "CofferSQLiteTests", dependencies: ["CFaultyFiles", "CofferSQLite", "MemorySearch", "TestSupport"],
            swiftSettings: testing),
        .testTarget(
            name: "CofferVaultTests", dependencies: ["CofferVault", "CofferFaults", "TestSupport"],
            swiftSettings: testing),
        .testTarget(
            name: "CofferModelTests", dependencies: ["CofferModel", "TestSupport"], swiftSettings: testing),
        .testTarget(
            name: "CofferTests",
            dependencies: ["Coffer", "CofferFaults", "CofferRecords", "MemorySearch", "TestSupport"],
            swiftSettings: testing),
        .testTarget(name: "CofferKeysTests", dependencies: ["Coffer", "CofferKeys"], swiftSettings: testing),
        .testTarget(
            name: "CofferMaintenanceTests",
            dependencies: ["Coffer", "CofferMaintenance", "CofferSealing", "CofferTesting", "TestSupport"],
            swiftSettings: testing),
        .testTarget(
            name: "CofferCouchbaseLiteTests",
            dependencies: [
                "Coffer", "CofferCouchbaseLite", "CofferFaults", "CofferModel", "CofferSQLite", "CofferSealing",
                "CofferTesting", "CofferVault", "TestSupport",
            ],
            swiftSettings: testing),
        .testTarget(
            name: "CofferTestingTests", dependencies: ["Coffer", "CofferTesting"], swiftSettings: testing),
        .testTarget(
            name: "CofferSyncTests",
            dependencies: [
                "Coffer", "CofferModel", "CofferSealing", "CofferSync", "CofferTesting", "TestSupport",
            ],
            swiftSettings: testing),
        .testTarget(
            name: "CofferLoggingTests",
            dependencies: [
                "Coffer", "CofferLogging", "CofferSealing", "CofferSync", "CofferTesting",
                .product(name: "Logging", package: "swift-log", condition: .when(traits: ["SwiftLog"])),
            ],
            swiftSettings: testing),
        .testTarget(name: "SourceTests", swiftSettings: testing),
    ]
)

// What scripts/sanitize runs is a part of the suites, and nothing else is compiled for it: with a sanitizer that takes minutes.
if let files = Context.environment["COFFER_TEST_FILES"]?.split(separator: "\n") {
    for target in package.targets where target.type == .test {
        let folder = "Tests/\(target.name)/"
        target.sources = files.filter { $0.hasPrefix(folder) }.map { String($0.dropFirst(folder.count)) }
    }
    package.targets.removeAll { $0.sources == [] }
}

// Most of what tests take goes into the library: scripts/test has that optimized, as it is released, and the tests themselves not.
// Where nothing says so there is no such flag, which would keep other packages from depending on this one.
if Context.environment["COFFER_OPTIMIZED"] == "1" {
    let (swift, c) = (["-O"], ["-O2"])
    for target in package.targets where target.type == .regular {
        target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(swift)]
        target.cSettings = (target.cSettings ?? []) + [.unsafeFlags(c)]
    }
}
