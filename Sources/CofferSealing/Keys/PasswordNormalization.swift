internal import Foundation

extension SecretBytes {
    /// The UTF-8 of `password` in Unicode's form NFC, so that passwords that are equal as strings are the same key
    /// whichever way a keyboard composed them.
    ///
    /// ASCII is in that form already and goes straight into the secret buffer. Anything else passes through Foundation,
    /// which leaves a copy behind that can't be wiped.
    init(normalizing password: String) {
        if password.utf8.allSatisfy({ $0 < 0x80 }) {
            self.init(utf8Of: password)
        } else {
            self.init(utf8Of: password.precomposedStringWithCanonicalMapping)
        }
    }

    private init(utf8Of string: String) {
        unsafe self.init(byteCount: string.utf8.count) { buffer in
            for (index, byte) in string.utf8.enumerated() { unsafe buffer[index] = byte }
        }
    }
}
