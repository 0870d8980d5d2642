internal import CofferSealing
public import Coffer

/// The SHA-256 of `bytes`, 32 bytes: the tool chains its receipts with it.
///
/// - Throws: `encryptionUnavailable` if OpenSSL doesn't offer it.
@_spi(Tool) public func sha256(of bytes: [UInt8]) throws(CofferError) -> [UInt8] {
    try Digest.sha256(of: bytes)
}
