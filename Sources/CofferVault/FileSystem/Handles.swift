#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// An open directory, closed with its last reference. Any thread may use it.
package final class Directory: Sendable {
    /// The descriptor, which belongs to this object.
    package let descriptor: Int32

    /// Where it was when it was opened: for messages, and for a library that takes only paths.
    package let path: String

    package init(adopting descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit { _ = close(descriptor) }

    /// The path of an entry.
    package func path(of name: String) -> String { path.hasSuffix("/") ? path + name : "\(path)/\(name)" }
}

/// An open file, closed with its last reference.
package final class File: Sendable {
    /// The descriptor, which belongs to this object.
    package let descriptor: Int32

    /// Where it was when it was opened: for messages.
    package let path: String

    package init(adopting descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit { _ = close(descriptor) }
}
