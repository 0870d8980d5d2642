import Foundation
import Testing

@testable import CofferTool

@Suite("Holders of locks in the system's list")
struct LockHolderTests {
    private let folder = FileManager.default.temporaryDirectory

    @Test("The list of lock holders has a lock that one reading left out, as the system's do while locks come and go")
    func lockLeftOut() throws {
        let file = try line(process: 10)
        #expect(holders(in: [other(1), other(2) + file, other(3)]) == [10])
    }

    @Test("The list of lock holders reads no more once the list stays the same, and ends where it never does")
    func readings() throws {
        var count = 0
        _ = LockHolders(readingList: {
            count += 1; return other(1)
        })
        #expect(count == 2)
        count = 0
        _ = LockHolders(readingList: {
            count += 1; return other(count)
        })
        #expect(count == 8)
    }

    @Test("The list of lock holders names each holder once, however often it was read, and none that only waits")
    func onceEach() throws {
        let (first, second) = (try line(process: 10), try line(process: 7))
        let waiting = first.replacing("1: FLOCK", with: "1: -> FLOCK").replacing(" 10 ", with: " 11 ")
        #expect(holders(in: [first + second + waiting, other(1) + first]) == [7, 10])
    }

    @Test("The list of lock holders takes nothing from lines that are not such locks")
    func otherLines() throws {
        let line = try line(process: 10)
        let posix = line.replacing("FLOCK", with: "POSIX")
        #expect(holders(in: [posix, "\n1: FLOCK\n1: FLOCK ADVISORY WRITE x y z 0 EOF\n", ""]) == [])
    }

    @Test("A lock that the list leaves out in all readings is found beside the directory that holds it")
    func openDirectory() throws {
        let path = folder.appending(path: "held-\(UUID())").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let directory = open(path, O_RDONLY | O_DIRECTORY)
        defer { close(directory) }
        #expect(LockHolders(readingList: { "" }).holders(of: path) == [])
        try #require(flock(directory, LOCK_EX) == 0)
        #expect(LockHolders(readingList: { "" }).holders(of: path).map(\.process) == [getpid()])
    }

    /// One reading after the other, the last of them again and again.
    private func holders(in readings: [String]) -> [Int32] {
        var number = 0
        let holders = LockHolders(
            readingList: {
                defer { number += 1 }
                return readings[min(number, readings.count - 1)]
            }, readingDirectories: { [] })
        return holders.holders(of: folder.path).map(\.process)
    }

    /// A lock of the folder. Its device is the one that the file's own number says, as most file systems list it.
    private func line(process: Int) throws -> String {
        var status = stat()
        try #require(stat(folder.path, &status) == 0)
        let device = UInt64(status.st_dev)
        let parts = [(device >> 8) & 0xFFF, device & 0xFF].map { String(format: "%02x", Int($0)) }
        return "1: FLOCK  ADVISORY  WRITE \(process) \(parts[0]):\(parts[1]):\(status.st_ino) 0 EOF\n"
    }

    private func other(_ file: Int) -> String { "2: FLOCK  ADVISORY  WRITE 1 ff:ff:\(file) 0 EOF\n" }
}
