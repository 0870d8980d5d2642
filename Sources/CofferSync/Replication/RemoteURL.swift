package import Foundation

/// The place of a database on a server, and who one is there.
package struct RemoteURL: Sendable {
    /// Scheme, host and port.
    package let origin: String
    /// The path of the database, percent-encoded, without a slash at its end.
    package let path: String
    /// What the URL itself says.
    package let credentials: (name: String, password: String)?

    /// - Throws: ``SyncError`` 400 for what is not such a place.
    package init(_ url: URL) throws(SyncError) {
        guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let scheme = parts.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let host = parts.percentEncodedHost, !host.isEmpty
        else { throw SyncError(400, "the URL is not an HTTP URL") }
        guard parts.query == nil, parts.fragment == nil else {
            throw SyncError(400, "the URL of a database has neither a query nor a fragment")
        }
        var path = parts.percentEncodedPath
        while path.hasSuffix("/") { path.removeLast() }
        guard path.count > 1, let name = path.split(separator: "/").last?.percentDecoded(), !name.hasPrefix("_") else {
            throw SyncError(400, "the URL names no database")
        }
        origin = "\(scheme)://\(host)" + (parts.port.map { ":\($0)" } ?? "")
        self.path = path
        credentials = parts.user.map { ($0, parts.password ?? "") }
    }

    /// Without credentials: what checkpoints are named by.
    package var text: String { origin + path }

    /// The path of what is beside the database, such as `_session`.
    package func beside(_ name: String) -> String {
        path.split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/\(name)"
    }
}
