// swift-tools-version: 6.2
import PackageDescription

// A package of its own, built only by scripts/fuzz, which passes the flags of libFuzzer and the address sanitizer.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "coffer-fuzz",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "coffer", path: "..")
    ],
    targets: [
        // The tool's own files, by links: what is in an executable can't be imported.
        .target(name: "Records", swiftSettings: settings),
        .executableTarget(
            name: "Fuzz",
            dependencies: ["Records", .product(name: "Coffer", package: "coffer")],
            swiftSettings: settings
        ),
    ]
)
