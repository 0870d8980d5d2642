internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A file that was opened, to be read once.
struct OpenFile {
    let descriptor: Int32
    /// What messages call it.
    let name: String
    /// Its length; 0 for what is not a regular file.
    let byteCount: Int

    /// Which files are meant.
    enum Kind {
        /// Whatever somebody named: pipes and links, too.
        case any
        /// A regular file under that very name.
        case regular
    }

    static let standardInput = OpenFile(descriptor: STDIN_FILENO, name: "standard input", byteCount: 0)

    private init(descriptor: Int32, name: String, byteCount: Int) {
        self.descriptor = descriptor
        self.name = name
        self.byteCount = byteCount
    }

    /// - Parameter identity: which file it was when it was listed; nil for whichever it is.
    init(_ path: String, _ kind: Kind = .any, identity: FileIdentity? = nil) throws(Failure) {
        // Without O_NONBLOCK, opening what has become a pipe would wait for somebody who writes.
        let flags = kind == .regular ? O_NOFOLLOW | O_NONBLOCK : 0
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | flags)
        guard descriptor >= 0 else { throw Failure.system(errno, path) }
        let byteCount = Self.regularByteCount(descriptor)
        guard byteCount != nil || kind == .any else {
            close(descriptor)
            throw Failure.notAFile(path, "no regular file")
        }
        guard identity == nil || FileIdentity(descriptor: descriptor) == identity else {
            close(descriptor)
            throw Failure.notAFile(path, "another file took its place")
        }
        self.init(descriptor: descriptor, name: path, byteCount: byteCount ?? 0)
    }

    /// Whether a descriptor is that of a regular file.
    static func isRegular(_ descriptor: Int32) -> Bool { regularByteCount(descriptor) != nil }

    private static func regularByteCount(_ descriptor: Int32) -> Int? {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int(status.st_size)
    }
}

extension Failure {
    /// Something among the files to attach is not a file.
    static func notAFile(_ path: String, _ what: String) -> Failure {
        Failure(
            message: "\(path): \(what), and so it cannot be attached", code: "invalidAttachment", status: 400,
            exit: .failed)
    }
}

/// An open file as a stream, which a signal ends. Its error is a ``Failure``.
final class OpenFileStream: InputStream {
    private let file: OpenFile
    private let progress: ProgressMeter?
    private var status = Stream.Status.notOpen
    private var failure: Failure?

    /// The stream closes the file when it is closed itself.
    init(_ file: OpenFile, _ progress: ProgressMeter? = nil) {
        self.file = file
        self.progress = progress
        super.init(data: Data())
    }

    override var streamStatus: Stream.Status { status }
    override var streamError: (any Error)? { failure }
    override var hasBytesAvailable: Bool { status == .open }
    override func open() { if status == .notOpen { status = .open } }

    override func close() {
        if status != .closed, file.descriptor != STDIN_FILENO { _ = System.close(file.descriptor) }
        status = .closed
    }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        guard status == .open else { return status == .atEnd ? 0 : -1 }
        do throws(Failure) {
            let count = unsafe try readSome(buffer, maxLength)
            if count == 0 { status = .atEnd }
            progress?.add(count)
            return count
        } catch {
            failure = error
            status = .error
            return -1
        }
    }

    private func readSome(_ buffer: UnsafeMutablePointer<UInt8>, _ byteCount: Int) throws(Failure) -> Int {
        while true {
            try Interruption.waitForInput(from: file.descriptor)
            let count = unsafe System.read(file.descriptor, buffer, byteCount)
            if count >= 0 { return count }
            guard errno == EINTR else { throw Failure.system(errno, file.name) }
        }
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool { false }
}

/// The system's calls, whose names the stream has methods of.
private enum System {
    #if canImport(Glibc)
    static func close(_ descriptor: Int32) -> Int32 { Glibc.close(descriptor) }
    static func read(_ descriptor: Int32, _ buffer: UnsafeMutablePointer<UInt8>, _ byteCount: Int) -> Int {
        unsafe Glibc.read(descriptor, buffer, byteCount)
    }
    #else
    static func close(_ descriptor: Int32) -> Int32 { Darwin.close(descriptor) }
    static func read(_ descriptor: Int32, _ buffer: UnsafeMutablePointer<UInt8>, _ byteCount: Int) -> Int {
        unsafe Darwin.read(descriptor, buffer, byteCount)
    }
    #endif
}

/// The bytes of a file that somebody named, whatever kind of file it is.
enum InputFile {
    /// The bytes of the file at `path`, mapped into memory where that is possible, so that a large one costs none.
    static func contents(of path: String) throws(Failure) -> Data {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let number = errno
            try Interruption.check()
            throw Failure.system(number, path)
        }
        defer { close(descriptor) }
        var status = stat()
        if unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            let mapped = try? Data(contentsOf: URL(filePath: path), options: .alwaysMapped)
        {
            return mapped
        }
        return try contents(of: descriptor, named: path)
    }

    /// What `descriptor` holds up to its end. `name` is what messages call it.
    static func contents(of descriptor: Int32, named name: String) throws(Failure) -> Data {
        var contents = Data()
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            try Interruption.waitForInput(from: descriptor)
            let count = unsafe read(descriptor, &buffer, buffer.count)
            if count == 0 { return contents }
            if count > 0 {
                contents.append(contentsOf: buffer[..<count])
            } else if errno != EINTR {
                throw Failure.system(errno, name)
            }
        }
    }
}
