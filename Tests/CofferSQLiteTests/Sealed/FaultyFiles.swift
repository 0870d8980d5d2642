import CFaultyFiles
import Testing

@testable import CofferSQLite

/// Files beneath sealed pages that fail where a test says, and remember what was written and synced.
enum FaultyFiles {
    enum Fault: UInt32, CaseIterable, Sendable { case io, full, short }

    /// One change of the database file or its log.
    struct Operation {
        enum Kind: UInt32 { case write, truncate, sync, delete }

        let kind: Kind
        let isLog: Bool
        /// Or the length after a truncation.
        let offset: Int
        let bytes: [UInt8]
    }

    /// The VFS's name, when it is ready.
    static func vfs() throws -> String {
        try Library.loadCode()
        try #require(faulty_register() == 0)
        return FAULTY_VFS
    }

    static func reset() { faulty_reset() }

    static var callCount: Int { faulty_calls() }

    /// Has call number `call` fail, counted from now, and all behind it if it `goesOn`.
    static func arm(_ call: Int, _ fault: Fault, goesOn: Bool) {
        faulty_arm(call, faulty_kind(rawValue: fault.rawValue), goesOn ? 1 : 0)
    }

    /// Has the next sync fail.
    static func armSync() { faulty_arm_sync() }

    static func record() { faulty_record() }

    static var operationCount: Int { faulty_operation_count() }

    static func operations() -> [Operation] {
        (0..<faulty_operation_count()).compactMap { index in
            let operation = faulty_operation_at(index)
            return Operation.Kind(rawValue: UInt32(operation.kind)).map {
                Operation(
                    kind: $0, isLog: operation.is_log != 0, offset: Int(operation.offset),
                    bytes: Array(UnsafeBufferPointer(start: operation.bytes, count: Int(operation.count))))
            }
        }
    }
}

/// What the cache does, called without a file.
enum CacheProbes {
    static let all: [(String, @Sendable () -> Int32)] = [
        ("lent page is dropped", { probe_dropped_while_lent() }),
        ("content comes too late", { probe_late_insertion() }),
        ("two read the same page", { probe_two_readers() }),
        ("a page takes the place of one that was given up", { probe_place_taken_over() }),
        ("few of many are dropped, and many", { probe_dropped_from() }),
        ("two threads drop the same pages", { probe_dropped_by_two() }),
        ("pages of indexes stay longer than others, and not for ever", { probe_indexes_stay() }),
    ]
}

/// Whether a forked process seals under nonces of its own alone.
func forkedProcessSealsAlone(_ path: String) -> Bool { probe_fork(path) == 1 }

/// Whether the system's VFS doesn't lengthen a file when SQLite says how long it will be.
func sizeHintChangesNothing(_ path: String) -> Bool { probe_size_hint(path) == 1 }
