#if Sync
extension KeySource {
    /// Where the password of a `--user` comes from: what `--password` says, or the terminal.
    static func ofPassword(_ text: String?) throws(Failure) -> KeySource {
        if let text { return try KeySource(text, of: "--password") }
        guard Terminal.isPresent else {
            throw .usage("--user needs a password", hint: "--password SOURCE, as for --key")
        }
        return KeySource(origin: .prompt)
    }
}
#endif
