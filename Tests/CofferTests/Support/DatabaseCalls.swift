@preconcurrency import CSQLCipher
import CofferSealing
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Steps in wherever the library is about to run a certain piece of SQL: to hold the thread there, or to answer in
/// SQLite's place.
///
/// All calls into SQLite go through one table. In the test program two of its functions first come by here.
enum DatabaseCalls {
    /// How SQL is run.
    enum Kind: Sendable {
        /// As a prepared statement, for each row.
        case step
        /// All at once.
        case execution
    }

    fileprivate struct Point: Sendable {
        let kind: Kind?
        let sql: String
        let directory: String
        let action: @Sendable () -> Int32?
    }

    fileprivate static let points = Lock<[Int: Point]>([:])
    fileprivate static let pointCount = Atomic(0)
    private static let lastNumber = Atomic(0)

    /// Has `action` called by each thread that is about to run SQL with `sql` in it, in a database below `directory`. Where
    /// it returns a number, that is the result, and nothing is run.
    ///
    /// - Parameter kind: nil for all.
    /// - Returns: what ends this as its life ends.
    static func interrupt(
        before sql: String, _ kind: Kind? = nil, below directory: URL, _ action: @escaping @Sendable () -> Int32?
    ) -> Interruption {
        install()
        let number = lastNumber.add(1, ordering: .relaxed).newValue
        points.withLock {
            $0[number] = Point(kind: kind, sql: sql, directory: directory.lastPathComponent, action: action)
        }
        pointCount.add(1, ordering: .releasing)
        return Interruption(number: number)
    }

    final class Interruption: Sendable {
        private let number: Int

        fileprivate init(number: Int) { self.number = number }

        deinit {
            pointCount.subtract(1, ordering: .relaxed)
            _ = points.withLock { $0.removeValue(forKey: number) }
        }
    }

    /// Must be called before the first thread runs SQL, which reads the table without a lock.
    static func install() { _ = isInstalled }

    private static let isInstalled: Bool = {
        guard sqlcipher_load() == nil, Originals.shared.step != nil else { return false }
        sqlcipher_table.step = { statement in
            guard DatabaseCalls.pointCount.load(ordering: .acquiring) > 0,
                let result = DatabaseCalls.answer(.step, Originals.shared.sql(of: statement), statement: statement)
            else { return Originals.shared.step?(statement) ?? misuse }
            return result
        }
        sqlcipher_table.exec = { database, sql, row, context, message in
            guard DatabaseCalls.pointCount.load(ordering: .acquiring) > 0,
                let result = DatabaseCalls.answer(.execution, sql, database: database)
            else { return Originals.shared.exec?(database, sql, row, context, message) ?? misuse }
            return result
        }
        return true
    }()

    private static func answer(
        _ kind: Kind, _ sql: UnsafePointer<CChar>?, statement: OpaquePointer? = nil, database: OpaquePointer? = nil
    ) -> Int32? {
        guard let sql = sql.map({ String(cString: $0) }) else { return nil }
        let points = points.withLock { $0.values.filter { ($0.kind ?? kind) == kind && sql.contains($0.sql) } }
        guard !points.isEmpty else { return nil }
        let path = Originals.shared.path(of: database ?? Originals.shared.database(of: statement))
        for point in points where path.contains(point.directory) {
            if let result = point.action() { return result }
        }
        return nil
    }
}

/// SQLITE_MISUSE.
private let misuse: Int32 = 21

/// SQLite's own functions.
private struct Originals: @unchecked Sendable {
    typealias Step = @convention(c) (OpaquePointer?) -> Int32
    typealias Row =
        @convention(c) (
            UnsafeMutableRawPointer?, Int32, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
            UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        ) -> Int32
    typealias Execute =
        @convention(c) (
            OpaquePointer?, UnsafePointer<CChar>?, Row?, UnsafeMutableRawPointer?,
            UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        ) -> Int32
    private typealias FindSQL = @convention(c) (OpaquePointer?) -> UnsafePointer<CChar>?
    private typealias FindDatabase = @convention(c) (OpaquePointer?) -> OpaquePointer?
    private typealias FindPath = @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> UnsafePointer<CChar>?

    static let shared = Originals()

    let step: Step?
    let exec: Execute?
    private let findSQL: FindSQL?
    private let findDatabase: FindDatabase?
    private let findPath: FindPath?

    private init() {
        step = sqlcipher_table.step
        exec = sqlcipher_table.exec
        // The library was loaded for itself alone: looked for in the same order, it is found once more.
        #if canImport(Darwin)
        let library = dlopen(nil, RTLD_NOW)
        #else
        let names = ["libsqlcipher.so.2", "libsqlcipher.so.1", "libsqlcipher.so.0", "libsqlcipher.so"]
        let library = names.lazy.compactMap { dlopen($0, RTLD_NOW) }.first
        #endif
        findSQL = dlsym(library, "sqlite3_sql").map { unsafeBitCast($0, to: FindSQL.self) }
        findDatabase = dlsym(library, "sqlite3_db_handle").map { unsafeBitCast($0, to: FindDatabase.self) }
        findPath = dlsym(library, "sqlite3_db_filename").map { unsafeBitCast($0, to: FindPath.self) }
    }

    func sql(of statement: OpaquePointer?) -> UnsafePointer<CChar>? { findSQL?(statement) }

    func database(of statement: OpaquePointer?) -> OpaquePointer? { findDatabase?(statement) }

    func path(of database: OpaquePointer?) -> String { findPath?(database, "main").map { String(cString: $0) } ?? "" }
}
