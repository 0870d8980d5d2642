// swift-tools-version: 6.2
import PackageDescription

// TwoDatabases: an app that keeps an encrypted database of documents with Coffer, and a plain one of tables with GRDB.
// Coffer brings SQLCipher and GRDB brings SQLite, whose functions have the same names. The two executables differ in
// nothing but the order in which they depend on them: neither order may matter.
//
// Notes: an app's store, a small command over it, and the tests with which it proves that the store is encrypted.
//
// RotationJob: gives all databases of a folder a new key, as a job that runs at night does, and the tests that expect a 401 of
// every other key.
let coffer = Target.Dependency.product(name: "Coffer", package: "coffer")
let testing = Target.Dependency.product(name: "CofferTesting", package: "coffer")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")

let package = Package(
    name: "Examples",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "coffer", path: ".."),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    ],
    targets: [
        .target(name: "TwoDatabases", dependencies: [coffer, grdb], path: "TwoDatabases/TwoDatabases"),
        .executableTarget(
            name: "CofferFirst", dependencies: [coffer, grdb, "TwoDatabases"], path: "TwoDatabases/CofferFirst"),
        .executableTarget(
            name: "GRDBFirst", dependencies: [grdb, coffer, "TwoDatabases"], path: "TwoDatabases/GRDBFirst"),

        .target(name: "Notes", dependencies: [coffer], path: "Notes/Notes"),
        .executableTarget(name: "notes-app", dependencies: [coffer, "Notes"], path: "Notes/NotesApp"),
        .testTarget(name: "NotesTests", dependencies: [coffer, testing, "Notes"], path: "Notes/NotesTests"),

        .target(name: "RotationJob", dependencies: [coffer], path: "RotationJob/RotationJob"),
        .executableTarget(
            name: "rotation-job", dependencies: [coffer, "RotationJob"], path: "RotationJob/rotation-job"),
        .testTarget(
            name: "RotationJobTests", dependencies: [coffer, testing, "RotationJob"],
            path: "RotationJob/RotationJobTests"),
    ]
)
