internal import CofferSealing

// The same calls for tasks: see Database+Async.swift.

extension DatabaseView {
    /// Brings the view up to date: see the form without `async`.
    @discardableResult
    public func updateIndex() async throws -> Int {
        try await database.storage.inBackground { [self] () throws(CofferError) in try updateIndex() }
    }

    /// Drops the view's entries: see the form without `async`.
    @discardableResult
    public func deleteIndex() async throws -> Bool {
        try await database.storage.inBackground { [self] () throws(CofferError) in try deleteIndex() }
    }

    /// Deletes the view: see the form without `async`.
    public func delete() async throws {
        try await database.storage.inBackground { [self] () throws(CofferError) in try delete() }
    }
}

extension Database {
    /// Declares an index over properties: see the form without `async`.
    @discardableResult
    public func createIndex(named name: String, on paths: PropertyPath...) async throws -> Bool {
        try await createIndex(named: name, on: paths)
    }

    /// Declares an index over properties: see the form without `async`.
    @discardableResult
    public func createIndex(named name: String, on paths: [PropertyPath]) async throws -> Bool {
        try await storage.inBackground { [self] () throws(CofferError) in try createIndex(named: name, on: paths) }
    }

    /// Drops an index: see the form without `async`.
    @discardableResult
    public func deleteIndex(named name: String) async throws -> Bool {
        try await storage.inBackground { [self] () throws(CofferError) in try deleteIndex(named: name) }
    }

    /// Brings all declared indexes up to date: see the form without `async`.
    @discardableResult
    public func updateIndexes() async throws -> Int {
        try await storage.inBackground { [self] () throws(CofferError) in try updateIndexes() }
    }
}
