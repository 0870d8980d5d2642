// swift-tools-version: 6.2
import PackageDescription

// What somebody would use instead of Coffer: built only by `scripts/bench --others`, which runs it beside Coffer.
let package = Package(
    name: "coffer-benchmarks-others",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0")
    ],
    targets: [
        .executableTarget(name: "GRDBDocuments", dependencies: [.product(name: "GRDB", package: "GRDB.swift")])
    ]
)
