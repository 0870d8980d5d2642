internal import Foundation
internal import Coffer
@_spi(Tool) internal import CofferKeys

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A file of receipts: lines that are appended and on the disk when the call returns, for one process at a time.
struct ReceiptFile: Sendable {
    /// An open file, which is closed with its last user.
    private final class Handle: Sendable {
        let descriptor: Int32
        init(descriptor: Int32) { self.descriptor = descriptor }
        deinit { close(descriptor) }
    }

    private let handle: Handle
    private let path: String
    private(set) var chain = ReceiptChain()
    private(set) var history = ReceiptHistory()
    /// What every line begins with.
    private static let beginning = Array(#"{"type":""#.utf8)

    /// How long the file is, up to the end of its last whole line.
    private var byteCount = 0
    private var failure: Failure?

    /// Opens it for appending, and makes it where it isn't there, for its owner alone.
    ///
    /// What a process had not written to its end when it was killed goes: no store was changed after that.
    ///
    /// - Throws: `busy` (503) where another run has it, `damaged` (500) where a line was changed or cut out.
    init(appendingTo path: String) throws(Failure) {
        self.init(try Self.open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW), path)
        guard flock(handle.descriptor, LOCK_EX | LOCK_NB) == 0 else {
            guard errno == EWOULDBLOCK else { throw Failure.system(errno, path) }
            throw Failure(
                message: "\(path): another run of coffer rotate writes its receipts there", code: "busy", status: 503,
                exit: .busy)
        }
        let contents = try read()
        // What a kill has cut off begins as a receipt does. Anything else is not ours to remove: maybe somebody's key.
        let cut = contents[(contents.startIndex + byteCount)...]
        guard zip(cut, Self.beginning).allSatisfy({ $0 == $1 }) else {
            throw Failure.usage(
                "\(self.path): it is not a file of receipts, so it was left alone", hint: "name another file")
        }
        guard byteCount < contents.count else {
            try Folder.synchronize(Folder.parent(of: path))
            return
        }
        guard ftruncate(handle.descriptor, off_t(byteCount)) == 0, fsync(handle.descriptor) == 0 else {
            throw Failure.system(errno, path)
        }
    }

    /// Reads it, whoever writes to it.
    ///
    /// - Parameter digest: what the SHA-256 of one of its lines must be; nil if nobody knows.
    /// - Throws: `damaged` (500) where a line was changed or cut out.
    init(reading path: String, expecting digest: String?) throws(Failure) {
        self.init(try Self.open(path, O_RDONLY), path)
        expected = digest
        hasCutLine = try read().count > byteCount
    }

    /// Whether its last line has no end.
    private(set) var hasCutLine = false

    private var expected: String?

    /// Whether it has the line that was expected.
    var isExpected: Bool { expected == nil }

    private init(_ handle: Handle, _ path: String) {
        self.handle = handle
        self.path = Console.printable(path)
    }

    private static func open(_ path: String, _ flags: Int32) throws(Failure) -> Handle {
        // Without O_NONBLOCK, opening what is a pipe would wait for somebody else.
        #if canImport(Glibc)
        let descriptor = unsafe Glibc.open(path, flags | O_CLOEXEC | O_NONBLOCK, 0o600)
        #else
        let descriptor = unsafe Darwin.open(path, flags | O_CLOEXEC | O_NONBLOCK, 0o600)
        #endif
        guard descriptor >= 0 else { throw Failure.system(errno, path) }
        let handle = Handle(descriptor: descriptor)
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Failure.usage("\(path): receipts are kept in a regular file")
        }
        return handle
    }

    /// Takes in what is there, and leaves out what has no line end.
    private mutating func read() throws(Failure) -> Data {
        let contents = try InputFile.contents(of: handle.descriptor, named: path)
        while let end = contents[byteCount...].firstIndex(of: UInt8(ascii: "\n")) {
            let line = Data(contents[byteCount..<end])
            let number = chain.count + 1
            guard try chain.follow(line) else {
                throw damage(
                    "line \(number) does not follow the line before it: one of the two was changed, or lines were removed"
                )
            }
            guard let record = ReceiptRecord(line: line) else { throw damage("line \(number) is not a receipt") }
            history.add(record)
            if chain.last == expected { expected = nil }
            byteCount = end + 1
        }
        return contents
    }

    private func damage(_ reason: String) -> Failure {
        Failure(
            message: "\(path): \(reason)", hint: "keep the file, and give the next run another one",
            code: "damaged", status: 500, exit: .damaged)
    }

    /// Appends a line, which is on the disk when this returns.
    ///
    /// - Throws: where it can't be written; the file is as before then, or takes no more.
    mutating func append(_ line: JSONLine) throws(Failure) {
        if let failure { throw failure }
        var next = chain
        let bytes = try next.add(line)
        do throws(Failure) {
            try Console.write(bytes, to: handle.descriptor, named: path)
            guard fsync(handle.descriptor) == 0 else { throw Failure.system(errno, path) }
        } catch {
            // After an fsync that failed nobody knows what the disk has.
            if ftruncate(handle.descriptor, off_t(byteCount)) != 0 || fsync(handle.descriptor) != 0 { failure = error }
            throw error
        }
        byteCount += bytes.count
        chain = next
        if let record = ReceiptRecord(line: Data(bytes.dropLast())) { history.add(record) }
    }
}

/// Lines of JSON, each of which ends with the SHA-256 of the one before: what was changed, put in or cut out between them shows.
///
/// What was cut off at the end does not, unless somebody has kept ``last`` elsewhere.
struct ReceiptChain: Sendable {
    /// What the first line says of the one before.
    private static let beginning = String(repeating: "0", count: 64)
    private static let member = "previous"

    /// The SHA-256 of the last line, without its line end, in hexadecimal.
    private(set) var last = beginning

    /// How many lines there are.
    private(set) var count = 0

    /// Adds a line, and returns it as it is written, with its line end.
    mutating func add(_ line: JSONLine) throws(Failure) -> [UInt8] {
        var line = line
        line.add(Self.member, last)
        let bytes = Array(line.finished.utf8)
        try take(bytes)
        return bytes + [UInt8(ascii: "\n")]
    }

    /// Goes on with a line that was read, without its line end. False where it does not follow, and then nothing is changed.
    mutating func follow(_ line: some Collection<UInt8>) throws(Failure) -> Bool {
        guard line.suffix(ending.count).elementsEqual(ending) else { return false }
        try take(Array(line))
        return true
    }

    /// What the next line ends with.
    private var ending: [UInt8] { Array(",\"\(Self.member)\":\"\(last)\"}".utf8) }

    private mutating func take(_ line: [UInt8]) throws(Failure) {
        do throws(CofferError) {
            last = hexadecimal(try sha256(of: line))
        } catch {
            throw Failure(error)
        }
        count += 1
    }
}
