// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that who imports Coffer neither fetches nor builds an argument parser.
let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]
let testing: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "coffer-tool",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "coffer", targets: ["CofferTool"])
    ],
    traits: [
        .default(enabledTraits: ["Sync"]),
        .trait(
            name: "Sync",
            description: "The commands pull, push and serve. Without them neither SwiftNIO nor BoringSSL is built."),
    ],
    dependencies: [
        // SwiftLog too, as the library's own tests have it: what the two packages share is compiled once then.
        .package(
            name: "coffer", path: "..",
            traits: [
                .trait(name: "Sync", condition: .when(traits: ["Sync"])),
                .trait(name: "SwiftLog", condition: .when(traits: ["Sync"])),
            ]),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
        .executableTarget(
            name: "CofferTool",
            dependencies: [
                .product(name: "Coffer", package: "coffer"),
                .product(name: "CofferCouchbaseLite", package: "coffer"),
                .product(name: "CofferKeys", package: "coffer"),
                .product(name: "CofferMaintenance", package: "coffer"),
                .product(name: "CofferSync", package: "coffer", condition: .when(traits: ["Sync"])),
                .product(name: "CofferTesting", package: "coffer"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict
        ),
        .target(name: "CTerminal", path: "Tests/CTerminal"),
        .testTarget(name: "CofferToolTests", dependencies: ["CofferTool", "CTerminal"], swiftSettings: testing),
    ]
)
