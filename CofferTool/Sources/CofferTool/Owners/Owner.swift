internal import Synchronization
internal import Coffer
@_spi(Tool) internal import CofferKeys

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A user whose store root was asked to work on. It is done as that user.
///
/// The library gives SQLite paths. Whoever owns a folder can put a link to any file in the place of a name in it, and root
/// would follow it. A process that has given up root's rights for good can do nothing that they couldn't do themselves.
struct Owner: Hashable, Codable {
    let user: uid_t
    /// The group of the store's files.
    let group: gid_t

    private static let root: uid_t = 0
    /// Where a user without an account has files of root's group.
    private static let nobodysGroup: gid_t = 65_534

    private static let actingUser = Mutex<uid_t?>(nil)

    // MARK: Whose it is

    /// The users besides root who have a part in the store at `path`: its MANIFEST and its folder, or where there is no
    /// store, the folder that it would be in.
    static func others(ofStoreAt path: String) -> [Owner] {
        let path = (try? StorePath(path))?.path ?? path
        let descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return others(ofFolderAt: Folder.parent(of: path)) }
        defer { close(descriptor) }
        var owners: [Owner] = []
        var status = stat()
        if unsafe fstatat(descriptor, "MANIFEST", &status, AT_SYMLINK_NOFOLLOW) == 0 { owners.append(Owner(status)) }
        if unsafe fstat(descriptor, &status) == 0 { owners.append(Owner(status)) }
        return owners.filter { $0.user != root }
    }

    /// The owner of a folder that stores are in, or should be, unless that is root.
    static func others(ofFolderAt path: String) -> [Owner] {
        let descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_uid != root else { return [] }
        return [Owner(status)]
    }

    /// The folder that `path` leads to, by a path without links, and its owner; where that is root, whoever else owns a folder
    /// above it, and could put another in its place.
    ///
    /// From the top down: what is in a folder of root's nobody else can exchange.
    static func folder(at path: String) throws(Failure) -> (path: String, others: [Owner]) {
        guard let resolved = unsafe realpath(path, nil) else { throw Failure.system(errno, path) }
        defer { unsafe free(resolved) }
        let real = unsafe String(cString: resolved)
        let owners = others(ofFolderAt: real)
        guard owners.isEmpty else { return (real, owners) }
        var place = ""
        for name in real.split(separator: "/") {
            place += "/\(name)"
            var status = stat()
            guard unsafe lstat(place, &status) == 0 else { throw Failure.system(errno, place) }
            guard status.st_mode & S_IFMT == S_IFDIR else { throw Failure.system(ENOTDIR, place) }
            if status.st_uid != root { return (real, [Owner(status)]) }
        }
        return (real, [])
    }

    /// The same of a folder and of all stores in it.
    static func others(ofFolderOfStoresAt path: String) -> [Owner] {
        let stores = (try? StoreList(path))?.paths ?? []
        return others(ofFolderAt: path) + stores.flatMap(others(ofStoreAt:))
    }

    /// Stores by who is to work on them, in the order in which they first come. Nil is this process as it is: for its own,
    /// and for those of several owners at once, which the library refuses.
    static func parts(of stores: [String]) -> [(owner: Owner?, stores: [String])] {
        guard isRoot else { return [(nil, stores)] }
        var parts: [(owner: Owner?, stores: [String])] = []
        for store in stores {
            let owners = others(ofStoreAt: store)
            let owner = Set(owners.map(\.user)).count == 1 ? owners[0] : nil
            if let index = parts.firstIndex(where: { $0.owner == owner }) {
                parts[index].stores.append(store)
            } else {
                parts.append((owner, [store]))
            }
        }
        return parts
    }

    private init(_ status: stat) { (user, group) = (status.st_uid, status.st_gid) }

    // MARK: Acting as them

    /// Whether this process has root's rights, which it has to give up for other users.
    static var isRoot: Bool { geteuid() == root }

    /// Makes this process the one user's to whom `owners` come down, for good, where it is root. Keys and passwords are read
    /// before, with root's rights, as far as these matter for them.
    static func act(
        asOneOf owners: @autoclosure () -> [Owner], keys: @autoclosure () throws(Failure) -> [KeySource] = [],
        texts: @autoclosure () throws(Failure) -> [KeySource] = []
    ) throws(Failure) {
        guard isRoot else { return }
        let owners = owners()
        guard let owner = owners.first else { return }
        if let other = owners.first(where: { $0.user != owner.user }) {
            throw Failure(
                message: "users \(owner.user) and \(other.user) own parts of it, so neither user can work on it",
                code: "notOwner", status: 403, exit: .failed)
        }
        for key in try keys() { try EarlySecrets.takeKey(key) }
        for text in try texts() { try EarlySecrets.takeText(text) }
        try owner.act()
    }

    /// Makes this process that user's, for good: user, groups, and all that root may.
    func act() throws(Failure) {
        guard Self.isRoot, user != Self.root else { return }
        let account = Account(user)
        guard Self.setGroups(of: account) else { throw refusal(errno) }
        let group = ownGroup(account)
        // Of root these set the real, the effective and the saved one, of all threads.
        guard setgid(group) == 0, setuid(user) == 0 else { throw refusal(errno) }
        let isTaken = getuid() == user && geteuid() == user && getgid() == group && getegid() == group
        guard isTaken, seteuid(Self.root) != 0, setuid(Self.root) != 0, group == 0 || setegid(0) != 0 else {
            throw refusal(EPERM)
        }
        Self.actingUser.withLock { $0 = user }
    }

    /// What explains that something was refused, where root's rights were given up.
    static var hint: String? {
        actingUser.withLock { $0 }.map {
            "coffer works as user \($0), the owner, and reads only keys and passwords as root"
        }
    }

    private func refusal(_ number: Int32) -> Failure {
        let reason = unsafe strerror(number).map { unsafe String(cString: $0) } ?? "error \(number)"
        return Failure(
            message: "this process can't become user \(user)'s, the owner's: \(reason)",
            hint: "run coffer as that user", code: "notOwner", status: 403, exit: .failed)
    }

    private static func setGroups(of account: Account?) -> Bool {
        guard let account else { return setgroups(0, nil) == 0 }
        #if canImport(Glibc)
        return unsafe initgroups(account.name, account.group) == 0
        #else
        return unsafe initgroups(account.name, Int32(bitPattern: account.group)) == 0
        #endif
    }

    /// The group of the store's files, if the user is in it: a file may have a group that its owner is not in.
    private func ownGroup(_ account: Account?) -> gid_t {
        guard let account else { return group == 0 ? Self.nobodysGroup : group }
        var groups = [gid_t](repeating: 0, count: 65_536)
        let count = unsafe getgroups(Int32(groups.count), &groups)
        return groups.prefix(Int(max(0, count))).contains(group) ? group : account.group
    }

    /// What the system knows of a user.
    private struct Account {
        let name: String
        let group: gid_t

        init?(_ user: uid_t) {
            var entry = unsafe passwd()
            var buffer = [CChar](repeating: 0, count: 1 << 16)
            let found: (String, gid_t)? = unsafe buffer.withUnsafeMutableBufferPointer { buffer in
                guard let start = buffer.baseAddress else { return nil }
                var result: UnsafeMutablePointer<passwd>?
                guard unsafe getpwuid_r(user, &entry, start, buffer.count, &result) == 0,
                    unsafe result != nil, let name = unsafe entry.pw_name
                else { return nil }
                return unsafe (String(cString: name), entry.pw_gid)
            }
            guard let found else { return nil }
            (name, group) = found
        }
    }
}

/// Keys and passwords that only root may be able to read, read before the process became another user's. They never leave it:
/// not as an argument, not in a file.
enum EarlySecrets {
    private static let keys = Mutex<[KeySource: KeyReading]>([:])
    private static let texts = Mutex<[KeySource: String]>([:])

    /// Reads a key, unless its source is one that is open already, or a person.
    static func takeKey(_ source: KeySource) throws(Failure) {
        guard source.needsRights, key(from: source) == nil else { return }
        let key = try source.reading(for: "key")
        keys.withLock { $0[source.early] = key }
    }

    /// The same for a secret that is not a key of a store.
    static func takeText(_ source: KeySource) throws(Failure) {
        guard source.needsRights, text(from: source) == nil else { return }
        let text = try source.text(for: "secret", "secret")
        texts.withLock { $0[source] = text }
    }

    static func key(from source: KeySource) -> KeyReading? { keys.withLock { $0[source.early] } }

    static func text(from source: KeySource) -> String? { texts.withLock { $0[source] } }
}

extension KeySource {
    /// What it was read as: whichever store is meant, since the process is about one, and for what only where a command may
    /// answer otherwise then.
    fileprivate var early: KeySource { asked(for: isCommand ? request.purpose : .old) }
}
