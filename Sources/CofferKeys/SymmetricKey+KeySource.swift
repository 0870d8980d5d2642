public import Coffer
internal import CofferSealing

extension SymmetricKey {
    /// Reads a key where `source` says.
    ///
    /// It waits for as long as the source lets it: a pipe until its writer closes it, a command until it ends. May be called
    /// from any thread. Reading the environment is safe only while nobody changes it (`setenv`). The bytes that were read are
    /// overwritten; a password is a Swift string for a moment, of which a copy may stay in memory, as with
    /// ``Coffer/SymmetricKey/init(password:)``.
    ///
    /// - Parameters:
    ///   - source: where the key is.
    ///   - request: what a command learns. Default: that a store is to be opened.
    /// - Throws: ``KeySourceError``, which is never a wrong key.
    public convenience init(from source: KeySource, for request: KeyRequest = KeyRequest()) throws(KeySourceError) {
        self.init(copying: try source.key(for: request))
    }
}

extension KeySource {
    fileprivate func key(for request: KeyRequest) throws(KeySourceError) -> SymmetricKey {
        do {
            return try reading(for: request).key
        } catch let error as KeySourceError {
            throw error
        } catch {
            throw .unavailable("\(self) could not be read")
        }
    }
}
