@_spi(Tool) internal import CofferKeys
internal import Synchronization

/// Which keys were read as passwords and look like 32 bytes: where no key opens a store, that was probably not meant. Nothing of
/// the keys is kept.
enum ForgottenEncoding {
    private static let noted = Mutex<(option: String?, encoding: String)?>(nil)

    /// - Parameter option: what named the key; nil if nobody knows.
    static func note(_ reading: KeyReading, of option: String?) {
        let prefix: String? =
            switch reading.probableEncoding {
            case .hex: "hex"
            case .base64: "base64"
            default: nil
            }
        guard let prefix else { return }
        noted.withLock { $0 = $0 ?? (option, prefix) }
    }

    /// What to say where a key is wrong; nil if no key looks like that.
    static var hint: String? {
        noted.withLock { $0 }.map { option, encoding in
            "what \(option.map { "\($0) names" } ?? "a key's source holds") looks like 32 bytes in \(encoding), and was taken for "
                + "a password: \(encoding)+ before the source says what it is"
        }
    }
}
