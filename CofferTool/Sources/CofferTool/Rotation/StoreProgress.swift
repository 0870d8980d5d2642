/// How far the rotation of one store is.
struct StoreProgress: Codable, Equatable, Sendable {
    let path: String
    /// How many of the store's bytes have been re-encrypted.
    var completedByteCount = 0
    /// How many bytes it has: its database and its contents; 0 while nobody knows.
    var totalByteCount = 0

    /// From 0 to 1.
    var share: Double {
        totalByteCount > 0 ? min(1, Double(completedByteCount) / Double(totalByteCount)) : 0
    }
}
