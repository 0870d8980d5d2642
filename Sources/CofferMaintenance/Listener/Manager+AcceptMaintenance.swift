public import Coffer
public import CofferSealing
public import Foundation

extension Manager {
    /// Lets the tool `coffer` work on the databases that this process has open in this manager's directory, and on those that it
    /// opens later. Without it the tool finds such a store busy.
    ///
    /// ```swift
    /// try Manager.shared.acceptMaintenance()
    /// ```
    ///
    /// The process listens on a Unix socket (unix(7)), in a directory of its user's alone: `$COFFER_RUNTIME_DIR` if that is set,
    /// otherwise `/run/user/UID/coffer`, or `/tmp/coffer-UID` where the system has no run-time directory for the user. The
    /// tool looks there when it finds a store busy, and has this process do the work: `info`, `check`, `backup`, `export`,
    /// `compact`, `key list`, `add`, `remove` and `replace`, `rekey` and `rotate`. It must run as the same user, or as root, and
    /// **its key must open the store, as always**: one that doesn't is a 401. Keys go through that socket and nowhere else.
    ///
    /// Whatever is done is what the same call of ``Database`` does: others read and write meanwhile, streams and drafts go on
    /// working, and a database whose key was changed stays open. **This process must use the new key the next time.**
    /// When the tool ends before the work does, the work is cancelled.
    ///
    /// An app goes on without it where it throws, as anybody may have taken the place in `/tmp`. Calling it again for the same
    /// directory does nothing, unless the system has removed the socket. It lasts until ``MaintenanceListener/stop()``, or as long as the
    /// process does. The manager's directory is made if it isn't there.
    ///
    /// - Parameter directory: another directory for sockets, such as a service's own: the tool finds it by `COFFER_RUNTIME_DIR`.
    ///   Made if it isn't there, closed to everybody else. Default: nil, as said above.
    /// - Returns: what ends it. It needs not be kept.
    /// - Throws: `invalidArgument` (400) where the path of the directory for sockets is longer than an address can be;
    ///   `notOwner` (403) where that directory isn't this user's, or others may look into it; `ioFailed` (500).
    @discardableResult
    public func acceptMaintenance(in directory: URL? = nil) throws(CofferError) -> MaintenanceListener {
        try acceptMaintenance(
            in: directory.map { RuntimeDirectory(path: $0.path(percentEncoded: false)) }
                ?? RuntimeDirectory.candidates()[0])
    }

    func acceptMaintenance(in directory: RuntimeDirectory) throws(CofferError) -> MaintenanceListener {
        try makeDirectory()
        let place = try FileIdentity(ofDirectoryAt: self.directory.path(percentEncoded: false))
        return try MaintenanceListener.listener(for: self, place, in: directory)
    }
}
