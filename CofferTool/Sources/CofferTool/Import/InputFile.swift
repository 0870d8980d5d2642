internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

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
