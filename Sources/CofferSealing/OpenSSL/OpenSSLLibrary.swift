internal import COpenSSL

/// The OpenSSL that this process has loaded.
package enum OpenSSLLibrary {
    /// What it says of its version (OpenSSL_version(3)).
    package static var version: String { unsafe String(cString: OpenSSL_version(OPENSSL_VERSION)) }
}
