#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// An open directory, closed with its last reference. Any thread may use it.
package struct Directory: Sendable {
    private let owned: OwnedDescriptor

    /// Where it is, as far as this process knows: for messages, and for a library that takes only paths.
    package let path: String

    /// Takes over `descriptor`.
    package init(adopting descriptor: Int32, path: String) {
        owned = OwnedDescriptor(descriptor)
        self.path = path
    }

    /// Valid for as long as this value or a copy lives.
    package var descriptor: Int32 { owned.descriptor }

    /// The same open directory, after it was given another name.
    func renamed(to path: String) -> Directory { Directory(owned, path: path) }

    private init(_ owned: OwnedDescriptor, path: String) {
        self.owned = owned
        self.path = path
    }

    /// The path of an entry.
    package func path(of name: String) -> String { path.hasSuffix("/") ? path + name : "\(path)/\(name)" }

    /// The path of an entry as messages have it, whatever its name is.
    func path(of name: FileName) -> String { path(of: name.description) }
}

/// An open file, closed with its last reference. Any thread may use it.
package struct File: Sendable {
    private let owned: OwnedDescriptor

    /// Where it was when it was opened: for messages.
    package let path: String

    /// Takes over `descriptor`.
    package init(adopting descriptor: Int32, path: String) {
        owned = OwnedDescriptor(descriptor)
        self.path = path
    }

    /// Valid for as long as this value or a copy lives.
    package var descriptor: Int32 { owned.descriptor }
}

/// The one owner of a descriptor.
private final class OwnedDescriptor: Sendable {
    let descriptor: Int32

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { _ = close(descriptor) }
}
