internal import Coffer

extension LogMessage {
    /// The methods that messages name. Another one could be any text of a stranger's.
    static let methods: Set<String> = ["GET", "HEAD", "PUT", "POST", "DELETE", "COPY", "OPTIONS", "PATCH"]

    /// The details that say how something failed on the way to a server or there.
    static func details(ofSync error: any Error) -> [String: String] {
        (error as? SyncError).map { ["status": String($0.status)] } ?? details(of: error)
    }
}
