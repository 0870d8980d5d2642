#if Sync
internal import NIOCore
internal import NIOSSL

extension TLSConfiguration {
    /// For a client: TLS 1.2 or later, a certificate that somebody who is trusted has signed, and its name the server's.
    ///
    /// - Parameter pem: certificates of those who are trusted, instead of the system's; nil for these.
    /// - Throws: ``SyncError`` 400 for what holds no certificate.
    static func client(trusting pem: String?) throws(SyncError) -> TLSConfiguration {
        var configuration = makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        if let pem {
            configuration.trustRoots = .certificates(try certificates(pem, "certificates that are trusted"))
        }
        return configuration
    }

    /// For a server: TLS 1.2 or later.
    ///
    /// - Throws: ``SyncError`` 400 for what holds no certificate or no key, and for a key that is not the certificate's.
    static func server(_ identity: ListenerOptions.TLS) throws(SyncError) -> NIOSSLContext {
        let chain = try certificates(identity.certificateChain, "the server's certificate")
        do {
            let key = try NIOSSLPrivateKey(bytes: Array(identity.privateKey.utf8), format: .pem)
            var configuration = makeServerConfiguration(
                certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
            configuration.minimumTLSVersion = .tlsv12
            configuration.applicationProtocols = ["http/1.1"]
            configuration.shutdownTimeout = .seconds(1)
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw SyncError(400, of: "the server's key", "not a private key in PEM, or not the certificate's")
        }
    }

    private static func certificates(_ pem: String, _ subject: String) throws(SyncError) -> [NIOSSLCertificate] {
        guard let all = try? NIOSSLCertificate.fromPEMBytes(Array(pem.utf8)), !all.isEmpty else {
            throw SyncError(400, of: subject, "no certificate in PEM")
        }
        return all
    }
}

extension SyncError {
    /// What went wrong before a connection was secure; nil for what is not a TLS error.
    init?(tls error: any Error) {
        if error as? NIOSSLExtraError == .failedToValidateHostname {
            self = .untrusted("the server's certificate is another host's")
            return
        }
        guard let error = error as? NIOSSLError else { return nil }
        switch error {
        case .unableToValidateCertificate, .noCertificateToValidate:
            self = .untrusted("the server has no certificate that is trusted")
        // There is no other way to ask BoringSSL's errors what they are.
        case .handshakeFailed(.sslError(let stack))
        where stack.contains { "\($0)".contains("CERTIFICATE_VERIFY_FAILED") }:
            self = .untrusted("the server's certificate is not signed by anybody who is trusted, or has expired")
        case .handshakeFailed:
            self.init(502, "no secure connection: the server does not speak TLS, or only an old kind")
        default: return nil
        }
    }

    /// Whoever answers is not proved to be the server: nothing was said to it.
    private static func untrusted(_ detail: String) -> SyncError { SyncError(495, detail) }
}
#endif
