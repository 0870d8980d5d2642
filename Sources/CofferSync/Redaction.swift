// What is printed, logged or dumped often ends in a file: options say what they are, and no password, token or key.

extension ReplicationOptions: CustomStringConvertible, CustomReflectable {
    /// That these are options.
    public var description: String { "options of a replication" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension ReplicationOptions.Credentials: CustomStringConvertible, CustomReflectable {
    /// How the server authenticates the user, without the secret.
    public var description: String {
        switch self {
        case .basic: "a name and a password"
        case .session: "a name and a password for a session"
        }
    }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension ListenerOptions: CustomStringConvertible, CustomReflectable {
    /// That these are options.
    public var description: String { "options of a listener" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension ListenerOptions.Access: CustomStringConvertible, CustomReflectable {
    /// Who may do what, without names and passwords.
    public var description: String {
        switch self {
        case .passwords: "those who know a password"
        case .unauthenticatedLoopback: "everybody on loopback"
        }
    }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension RemoteURL: CustomStringConvertible, CustomReflectable {
    /// The URL without name and password.
    package var description: String { text }
    /// A mirror that shows nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension Replication: CustomStringConvertible, CustomReflectable {
    /// Which way, and where.
    public var description: String { "\(direction == .pull ? "pull from" : "push to") \(remoteURL)" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

#if Sync
extension Listener: CustomStringConvertible, CustomReflectable {
    /// Where it listens.
    public var description: String { "listener at \(url)" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
#endif
