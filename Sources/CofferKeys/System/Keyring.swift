#if os(Linux)
internal import CLinux
internal import Glibc
#endif

/// The kernel's key management (keyrings(7)).
enum Keyring {
    /// What a key of type `user` holds that is described so.
    static func contents(ofKey description: String) throws(KeySourceError) -> KeyBytes {
        #if os(Linux)
        let key = try identifier(ofKey: description)
        var secret = KeyBytes()
        let count = unsafe secret.append { unsafe coffer_read_key(key, $0.baseAddress, UInt($0.count)) }
        guard count >= 0 else { throw failure(errno) }
        // What is longer is copied in part only.
        guard count <= KeyBytes.maximumByteCount else { throw KeyBytes.tooLong }
        return secret
        #else
        throw .unavailable("only Linux has keyrings in the kernel")
        #endif
    }

    #if os(Linux)
    private static func identifier(ofKey description: String) throws(KeySourceError) -> Int {
        var key = unsafe coffer_request_key("user", description)
        // A service has no link from its session to the keyring of its user.
        if key < 0, errno == ENOKEY || errno == EACCES {
            let first = errno
            key = unsafe coffer_search_user_keyring("user", description)
            if key < 0, errno == ENOKEY { throw failure(first) }
        }
        guard key >= 0 else { throw failure(errno) }
        return key
    }

    private static func failure(_ number: Int32) -> KeySourceError {
        switch number {
        case ENOKEY:
            .unavailable(
                "no keyring of this process or user has a key of that name",
                hint: "keyctl padd user NAME @u, with the key on standard input, makes one")
        case ENOSYS, EPERM:
            .unavailable(
                SystemError.message(number, "the kernel's keyrings"),
                hint: "containers often forbid them; a file or a credential serves there")
        default: .unavailable(SystemError.message(number, "the key of the kernel's keyring"))
        }
    }
    #endif
}
