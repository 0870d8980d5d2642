// swift-tools-version: 6.2
import PackageDescription

// What replication costs: built only by `scripts/bench --sync`, since it needs SwiftNIO.
let package = Package(
    name: "coffer-benchmarks-sync",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "coffer", path: "../..", traits: ["Sync"])
    ],
    targets: [
        .executableTarget(
            name: "SyncBenchmarks",
            dependencies: [
                .product(name: "Coffer", package: "coffer"), .product(name: "CofferSync", package: "coffer"),
            ])
    ]
)
