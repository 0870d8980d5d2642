internal import CofferSealing
public import Foundation

// The same calls for tasks: see Database+Async.swift.

extension Database {
    /// Saves a local document, over the one with that id if there is one: see the form without `async`.
    public func saveLocalDocument(_ properties: JSONObject, withID id: String) async throws {
        try await storage.inBackground { [self] () throws(CofferError) in
            try saveLocalDocument(properties, withID: id)
        }
    }

    /// Deletes a local document: see the form without `async`.
    public func deleteLocalDocument(withID id: String) async throws {
        try await storage.inBackground { [self] () throws(CofferError) in try deleteLocalDocument(withID: id) }
    }
}

extension Document {
    /// Has the document purged at a time, or never: see the form without `async`.
    public func setExpirationDate(_ date: Date?) async throws {
        try await database.storage.inBackground { [self] () throws(CofferError) in try setExpirationDate(date) }
    }
}
