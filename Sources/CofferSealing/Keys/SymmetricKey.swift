public import Foundation

/// A key that opens an encrypted store: a password, exactly 32 bytes of your own, or 32 random bytes.
public final class SymmetricKey: Sendable {
    private enum Kind { case password, bytes }

    private let kind: Kind
    private let secret: SecretBytes

    /// The length of every key that is not a password.
    static let byteCount = 32

    /// A key from a password.
    public init(password: String) {
        kind = .password
        secret = SecretBytes(normalizing: password)
    }

    /// A key from exactly 32 bytes.
    public init(data: some ContiguousBytes) throws(CofferError) {
        var secret = SecretBytes(byteCount: Self.byteCount)
        let count = unsafe data.withUnsafeBytes { source in
            if source.count == Self.byteCount {
                unsafe secret.withMutableBytes { unsafe $0.copyMemory(from: source) }
            }
            return source.count
        }
        guard count == Self.byteCount else {
            throw CofferError(.invalidKey, "a key has \(Self.byteCount) bytes, not \(count)")
        }
        kind = .bytes
        self.secret = secret
    }

    /// A key of 32 random bytes.
    public init() {
        kind = .bytes
        do {
            secret = try randomSecret(byteCount: Self.byteCount)
        } catch {
            fatalError("no random bytes for a key: \(error)")
        }
    }

    init(bytes: consuming SecretBytes) {
        precondition(bytes.byteCount == Self.byteCount)
        kind = .bytes
        secret = bytes
    }

    /// Lends the key's bytes to `body`: 32, or a password's UTF-8.
    public func withBytes<R: ~Copyable, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try unsafe secret.withBytes(body)
    }

    package var isPassword: Bool { kind == .password }

    /// Whether it is a password without a character.
    var isEmpty: Bool { secret.byteCount == 0 }
}

extension SymmetricKey: Equatable {
    /// Whether both are passwords or both are bytes, and the same.
    ///
    /// The time that this takes depends on the lengths alone.
    public static func == (left: SymmetricKey, right: SymmetricKey) -> Bool {
        guard left.kind == right.kind else { return false }
        return unsafe left.withBytes { left in
            unsafe right.withBytes { right in unsafe equalInConstantTime(left, right) }
        }
    }
}

extension SymmetricKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `SymmetricKey(redacted)`, whatever the key.
    public var description: String { "SymmetricKey(redacted)" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// A mirror that shows nothing, so that `dump` doesn't either.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
