internal import CofferRecords
public import CofferSealing
internal import Dispatch
internal import Synchronization

// The same calls for tasks. Opening derives a key, which takes a quarter of a second for a password, and may wait for
// another process.

extension Manager {
    /// Opens the database of that name, or creates it where `options.create` says so: see the form without `async`. A task that
    /// is cancelled while another process has it open waits no longer: `cancelled` (499).
    public func openDatabase(
        named name: String, options: DatabaseOptions = DatabaseOptions()
    ) async throws -> Database {
        let patience = Patience()
        return try await withTaskCancellationHandler {
            try await inBackground { [self] in
                try openDatabase(named: name, options: options) { !patience.isOver.load(ordering: .relaxed) }
            }
        } onCancel: {
            patience.isOver.store(true, ordering: .relaxed)
        }
    }

    /// Opens the database of that name, or creates it: see the form without `async`.
    public func database(named name: String, encryptionKey: SymmetricKey? = nil) async throws -> Database {
        try await inBackground { [self] in try database(named: name, encryptionKey: encryptionKey) }
    }

    /// Opens the database of that name, if there is one: see the form without `async`.
    public func existingDatabase(named name: String, encryptionKey: SymmetricKey? = nil) async throws -> Database? {
        try await inBackground { [self] in try existingDatabase(named: name, encryptionKey: encryptionKey) }
    }

    /// Deletes a database that is not open: see the form without `async`.
    public func deleteDatabase(named name: String) async throws {
        try await inBackground { [self] in try deleteDatabase(named: name) }
    }

    package func inBackground<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        if Task.isCancelled { throw CofferError(.cancelled) }
        return try await withCheckedThrowingContinuation { continuation in
            Self.opening.async { continuation.resume(with: Result { try work() }) }
        }
    }

    private static let opening = DispatchQueue(label: "coffer.opening", attributes: .concurrent)
}

/// Whether a task still waits for a database.
private final class Patience: Sendable {
    let isOver = Atomic(false)
}
