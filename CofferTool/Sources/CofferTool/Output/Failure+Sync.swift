#if Sync
internal import CofferSync

extension Failure {
    /// An error of a server, or of the way there. None of them is about the key of a store.
    init(_ error: SyncError, at server: String? = nil) {
        let (code, hint) = Self.meaning(of: error)
        self.init(
            message: (server.map { "\($0): " } ?? "") + error.description, hint: hint, code: code,
            status: error.status, exit: .failed)
    }

    private static func meaning(of error: SyncError) -> (code: String, hint: String?) {
        switch error.status {
        case 400: ("badRequest", nil)
        case 401:
            (
                "serverUnauthorized",
                "the server refused the user; this is not about the store's key: --user NAME, and --password SOURCE"
            )
        case 403: ("serverForbidden", nil)
        case 404: ("serverNotFound", nil)
        case 495: ("serverUntrusted", "--trust FILE names the certificates that must have signed its certificate")
        case 503, 504: ("serverUnreachable", nil)
        default: ("serverFailed", nil)
        }
    }
}
#endif
