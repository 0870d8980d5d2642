// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that who imports Coffer doesn't build it. It sees Coffer's public API and no more.
let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let package = Package(
    name: "coffer-benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "coffer", path: "..")
    ],
    targets: [
        // The same work by hand, in C: what Coffer is compared with.
        .target(name: "CByHand", linkerSettings: [.linkedLibrary("crypto"), .linkedLibrary("sqlcipher")]),
        .executableTarget(
            name: "Benchmarks",
            dependencies: [
                "CByHand", .product(name: "Coffer", package: "coffer"),
                .product(name: "CofferCouchbaseLite", package: "coffer"),
            ],
            swiftSettings: strict
        ),
    ]
)
