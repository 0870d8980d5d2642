public import Coffer
public import Foundation
internal import CofferSealing
internal import CofferVault

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

/// An expectation of a test that a store did not meet.
///
/// It is thrown, so that it fails a test of any framework. Its description names files, offsets and kinds of keys, and
/// holds no key and no marker.
public struct ExpectationFailure: Error, Sendable, CustomStringConvertible {
    /// The expectation, in a few words.
    public let expectation: String

    /// The findings that contradict it, one per line.
    public let complaints: [String]

    /// All of it, a line each.
    public var description: String { ([expectation + ":"] + complaints.map { "- " + $0 }).joined(separator: "\n") }

    init(_ expectation: String, _ complaints: [String]) {
        self.expectation = expectation
        self.complaints = complaints
    }

    /// Throws when there is anything to complain about.
    static func check(_ expectation: String, _ complaints: [String]) throws(ExpectationFailure) {
        guard complaints.isEmpty else { throw ExpectationFailure(expectation, complaints) }
    }
}

/// A key that must not open a store, and what is to be said about it.
struct WrongKey: Sendable {
    /// What somebody tries, in words that don't say the key.
    let name: String
    let key: SymmetricKey?
    let code: CofferError.Code

    /// What people and programs try in the place of `key`: guesses, slips, other encodings, single bits.
    ///
    /// Without a key the store isn't encrypted, and every key is a wrong one.
    static func matrix(insteadOf key: SymmetricKey?) throws(CofferError) -> [WrongKey] {
        let strangers: [(String, SymmetricKey)] = [
            ("another password", SymmetricKey(password: "Not the password, \(UUID())")),
            ("32 other bytes", try SymmetricKey()),
        ]
        guard let key else { return strangers.map { WrongKey(name: $0.0, key: $0.1, code: .notEncrypted) } }
        let near = try key.isPassword ? slips(of: key) : neighbors(of: key)
        return [WrongKey(name: "no key", key: nil, code: .keyRequired)]
            + (strangers + near).filter { $0.1 != key }.map { WrongKey(name: $0.0, key: $0.1, code: .wrongKey) }
    }

    /// What comes of typing a password almost right, and of taking it for bytes.
    private static func slips(of key: SymmetricKey) throws(CofferError) -> [(String, SymmetricKey)] {
        let password = unsafe key.withBytes { unsafe String(decoding: $0, as: UTF8.self) }
        let bytes = Array(password.utf8)
        var slips = [
            ("the password in upper case", password.uppercased()),
            ("the password in lower case", password.lowercased()),
            ("the password with a space behind it", password + " "),
            ("the password with a space before it", " " + password),
            ("the password with a line feed behind it", password + "\n"),
            ("the password twice", password + password),
            ("the password in base64", Data(bytes).base64EncodedString()),
            ("the password in hex", hexadecimal(bytes)),
        ]
        if password.count > 1 {
            slips.append(("the password without its last character", String(password.dropLast())))
            slips.append(("the password without its first character", String(password.dropFirst())))
        }
        let padded = (bytes + [UInt8](repeating: 0, count: 32)).prefix(32)
        return slips.map { ($0.0, SymmetricKey(password: $0.1)) }
            + keys([
                ("the password's bytes, filled up with zeros", Array(padded)),
                ("the password's SHA-256", try Digest.sha256(of: bytes)),
            ])
    }

    /// The keys next to one of 32 bytes, and the same bytes taken for a password.
    private static func neighbors(of key: SymmetricKey) throws(CofferError) -> [(String, SymmetricKey)] {
        let bytes = unsafe key.withBytes { unsafe Array($0) }
        let flipped = [0, 1, 127, 128, 254, 255].map { bit in
            var changed = bytes
            changed[bit / 8] ^= 0x80 >> UInt8(bit % 8)
            return ("the key with bit \(bit) flipped", changed)
        }
        return keys(
            flipped + [
                ("the key backwards", bytes.reversed()), ("32 zeros", [UInt8](repeating: 0, count: 32)),
                ("the key's SHA-256", try Digest.sha256(of: bytes)),
            ])
            + [
                ("the key in hex, as a password", SymmetricKey(password: hexadecimal(bytes))),
                ("the key in base64, as a password", SymmetricKey(password: Data(bytes).base64EncodedString())),
            ]
    }

    private static func keys(_ named: [(String, [UInt8])]) -> [(String, SymmetricKey)] {
        named.compactMap { name, bytes in (try? SymmetricKey(data: bytes)).map { (name, $0) } }
    }
}
