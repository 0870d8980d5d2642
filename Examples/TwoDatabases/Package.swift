// swift-tools-version: 6.2
import PackageDescription

// An app that keeps two databases: an encrypted one of documents with Coffer, and a plain one of tables with GRDB.
// Coffer brings SQLCipher and GRDB brings SQLite, whose functions have the same names. The two executables differ in
// nothing but the order in which they depend on them: neither order may matter.
let coffer = Target.Dependency.product(name: "Coffer", package: "coffer")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")

let package = Package(
    name: "TwoDatabases",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "coffer", path: "../.."),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    ],
    targets: [
        .target(name: "TwoDatabases", dependencies: [coffer, grdb]),
        .executableTarget(name: "CofferFirst", dependencies: [coffer, grdb, "TwoDatabases"]),
        .executableTarget(name: "GRDBFirst", dependencies: [grdb, coffer, "TwoDatabases"]),
    ]
)
