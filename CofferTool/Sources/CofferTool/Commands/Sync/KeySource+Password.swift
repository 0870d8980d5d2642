#if Sync
extension KeySource {
    /// Where the password of a `--user` comes from: what `--password` says, or the terminal.
    static func ofPassword(
        _ text: String?, of user: String = "--user", _ option: String = "--password"
    ) throws(Failure) -> KeySource {
        if let text { return try KeySource(text, of: option) }
        guard Terminal.isPresent else {
            throw .usage("\(user) needs a password", hint: "\(option) SOURCE, as for --key")
        }
        return KeySource(origin: .prompt)
    }
}
#endif
