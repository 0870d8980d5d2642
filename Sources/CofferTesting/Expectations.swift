public import Coffer
public import Foundation

/// Tries on the store at `store` whatever is not its key, and throws unless each attempt is refused with a 401 and leaves
/// every byte, name and permission as it was.
///
/// ```swift
/// try expectUnauthorized(at: stores.url(ofDatabaseNamed: "notes"), key: key) { key in
///     _ = try Notes(manager: stores.manager, key: key)      // the way the app opens it
/// }
/// ```
///
/// It tries no key; other keys of both kinds; for a password the same in another case, with a space or a line end, cut
/// short, doubled, as bytes, in hex and base64; for 32 bytes single flipped bits, other orders and the same as a password.
/// For a store without encryption it is any key. The right key has to be given for that, and as a control: in the end it must
/// open the store.
///
/// The store may be open. An attempt with a password costs what the store's passwords cost, a quarter of a second where
/// it was not made by ``TemporaryStores``, and there are some 15 of them.
///
/// - Parameters:
///   - store: the directory `NAME.coffer`.
///   - key: a key that opens it; nil when it is not encrypted.
///   - formerKeys: keys that opened it once and must not any more.
///   - opening: opens the store as the app does, with the key that it is given, and throws what comes of it. Default, and
///     always without a key: `Manager.openDatabase`, for writing and for reading only. The right key opens a copy then.
/// - Throws: ``ExpectationFailure``; what Foundation throws when the store can't be read.
public func expectUnauthorized(
    at store: URL, key: SymmetricKey?, formerKeys: [SymmetricKey] = [],
    opening: ((SymmetricKey) throws -> Void)? = nil
) throws {
    let refusal: CofferError.Code = key == nil ? .notEncrypted : .wrongKey
    let attempts =
        try WrongKey.matrix(insteadOf: key)
        + formerKeys.enumerated().map { WrongKey(name: "former key \($0 + 1)", key: $1, code: refusal) }
    let before = try StoreSnapshot(of: store)
    var complaints: [String] = []
    for attempt in attempts {
        for access in opening == nil || attempt.key == nil ? Access.allCases : [.asTheAppDoes] {
            do {
                if access == .asTheAppDoes, let opening, let key = attempt.key {
                    try opening(key)
                } else {
                    try open(store, attempt.key, access)
                }
                complaints.append("\(attempt.name) opened it\(access.words)")
            } catch let error as CofferError {
                if error.status != 401 {
                    complaints.append("\(attempt.name)\(access.words) was a \(error.status), \(error.code)")
                } else if error.code != attempt.code {
                    complaints.append("\(attempt.name)\(access.words) was \(error.code), not \(attempt.code)")
                }
            } catch {
                complaints.append(
                    "\(attempt.name)\(access.words) threw \(type(of: error)), which is not an error of Coffer's")
            }
        }
    }
    complaints += before.changes(in: try StoreSnapshot(of: store))
    do {
        if let opening, let key { try opening(key) } else { try openCopy(of: store, key) }
    } catch {
        complaints.append("the key that should open it does not: \(error)")
    }
    try ExpectationFailure.check("\(attempts.count) wrong keys for \(store.lastPathComponent)", complaints)
}

/// Does `body`, and throws unless it leaves every byte, name and permission below `directory` as it was.
///
/// - Returns: what `body` returns.
/// - Throws: ``ExpectationFailure``; what `body` throws, after the same check.
@discardableResult
public func expectUnchanged<Result>(_ directory: URL, during body: () throws -> Result) throws -> Result {
    let before = try StoreSnapshot(of: directory)
    let outcome = Swift.Result { try body() }
    try ExpectationFailure.check(
        "\(directory.lastPathComponent) as it was", before.changes(in: try StoreSnapshot(of: directory)))
    return try outcome.get()
}

/// Throws if any of `markers` can be read in a file below `directory`, or in a name: plain, as UTF-16, hex or base64.
///
/// Put markers that occur nowhere else into what the app saves, and call this while the store is open, and after. To see that the
/// search works, do the same with an unencrypted store and ``expectReadable(_:in:)``.
///
/// - Throws: ``ExpectationFailure``, also when there is no file at all; `invalidArgument` (400) for a marker of less
///   than 8 bytes, `ioFailed` (500) for a file that can't be read.
public func expectNothingReadable(of markers: [String], in directory: URL) throws {
    let report = try LeakScan(for: markers).search(directory)
    let complaints = report.fileCount == 0 ? ["there is no file"] : report.leaks.map(\.description)
    try ExpectationFailure.check("nothing readable in \(directory.lastPathComponent)", complaints)
}

/// Throws unless each of `markers` can be read in some file below `directory`: the control of a search that finds nothing.
///
/// - Throws: ``ExpectationFailure``; see ``expectNothingReadable(of:in:)`` for others.
public func expectReadable(_ markers: [String], in directory: URL) throws {
    let found = Set(try LeakScan(for: markers).search(directory).leaks.map(\.marker))
    let missing = markers.indices.filter { !found.contains($0) }.map { "marker \($0 + 1) is nowhere" }
    try ExpectationFailure.check("everything readable in \(directory.lastPathComponent)", missing)
}

/// How a wrong key is tried.
private enum Access: CaseIterable {
    case writing, reading, asTheAppDoes

    static let allCases: [Access] = [.writing, .reading]

    var words: String {
        switch self {
        case .writing: " for writing"
        case .reading: " for reading only"
        case .asTheAppDoes: ""
        }
    }
}

private func open(_ store: URL, _ key: SymmetricKey?, _ access: Access) throws {
    var options = DatabaseOptions()
    options.encryptionKey = key
    options.readOnly = access == .reading
    let manager = try Manager(directory: store.deletingLastPathComponent())
    let name = String(store.lastPathComponent.dropLast(".coffer".count)).replacing(":", with: "/")
    _ = try manager.openDatabase(named: name, options: options)
}

/// Opening may write, when a crash left something to do.
private func openCopy(of store: URL, _ key: SymmetricKey?) throws {
    let folder = URL.temporaryDirectory.appending(path: "coffer-testing-\(UUID())", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let copy = folder.appending(component: store.lastPathComponent, directoryHint: .isDirectory)
    try FileManager.default.copyItem(at: store, to: copy)
    try open(copy, key, .writing)
}
