public import Foundation

/// The purpose of a key, passed to a command in its environment so that it can answer for each store.
public struct KeyRequest: Hashable, Sendable {
    /// The purpose of the key.
    public enum Purpose: String, Hashable, Sendable {
        /// To open the store as it is.
        case old
        /// To open it from now on.
        case new
        /// To go on opening it beside the new one.
        case kept
    }

    /// The store's path: `COFFER_STORE_PATH`. Nil where no store is meant.
    public var storePath: String?

    /// The store's UUID, in lower case: `COFFER_STORE_UUID`. A copy has the same.
    public var storeUUID: UUID?

    /// `COFFER_KEY_PURPOSE`: `old`, `new` or `kept`.
    public var purpose: Purpose

    /// - Parameters:
    ///   - purpose: what the key is to do. Default: to open the store as it is.
    ///   - storePath: the store's path.
    ///   - storeUUID: the store's UUID.
    public init(_ purpose: Purpose = .old, storePath: String? = nil, storeUUID: UUID? = nil) {
        self.purpose = purpose
        self.storePath = storePath
        self.storeUUID = storeUUID
    }

    /// The variables that a request can set.
    static let variables: Set = ["COFFER_KEY_PURPOSE", "COFFER_STORE_PATH", "COFFER_STORE_UUID"]

    var environment: [String: String] {
        var environment = ["COFFER_KEY_PURPOSE": purpose.rawValue]
        environment["COFFER_STORE_PATH"] = storePath
        environment["COFFER_STORE_UUID"] = storeUUID?.uuidString.lowercased()
        return environment
    }
}
