internal import CofferSealing

/// What a process that is root does about stores of other users.
///
/// SQLite is given paths. Whoever owns a directory can put a link to any file in the place of a name between the look at it
/// and SQLite's opening of it; as root, SQLite follows the link, truncates the file behind it and gives it away.
package enum OtherOwners: Sendable {
    /// It keeps out of them.
    case refused
    /// It takes that risk.
    case trusted

    /// Throws `notOwner` (403) when this process is root, and `owner`, of what is at `path`, is not.
    func admit(_ owner: @autoclosure () throws(CofferError) -> FileOwner, of path: String) throws(CofferError) {
        guard self == .refused, FileOwner.isRoot else { return }
        let owner = try owner()
        guard owner.user != FileOwner.root else { return }
        throw CofferError(
            .notOwner, of: path,
            "it belongs to user \(owner.user), who could make root overwrite any file: do this as that user")
    }
}
