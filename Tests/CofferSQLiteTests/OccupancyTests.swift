import CofferSealing
import Foundation
import Testing

@testable import CofferSQLite

/// Two threads in one connection damage a healthy file: two threads in one transaction, with frames of the log written twice.
/// The compiler keeps connections apart; these tests go around it, as a mistake in an `unsafe` line would.
@Suite("Which thread is inside a connection")
struct OccupancyTests {
    @Test("A second thread in a connection stops the process, also between two calls of the first")
    func secondThread() async {
        await #expect(processExitsWith: .failure) {
            let connection = try Connection(inMemoryOf: "test")
            nonisolated(unsafe) let statement = Statement(connection, "SELECT 1")
            connection.occupy()
            let isOver = DispatchSemaphore(value: 0)
            Thread {
                _ = try? statement.first { $0.integer(0) }
                isOver.signal()
            }.start()
            isOver.wait()
            // Reached only if nothing stopped it.
            connection.vacate()
            exit(0)
        }
    }

    @Test("A statement that another thread frees while the connection is lent stops the process")
    func freedElsewhere() async {
        await #expect(processExitsWith: .failure) {
            let connection = try Connection(inMemoryOf: "test")
            nonisolated(unsafe) var statement: Statement? = Statement(connection, "SELECT 1")
            _ = try statement?.first { $0.integer(0) }
            connection.occupy()
            let isOver = DispatchSemaphore(value: 0)
            Thread {
                statement = nil
                isOver.signal()
            }.start()
            isOver.wait()
            connection.vacate()
            exit(0)
        }
    }

    @Test("One thread after another may use a connection, and one may lend it and call it")
    func oneAfterAnother() throws {
        let connection = try Connection(inMemoryOf: "test")
        nonisolated(unsafe) let statement = Statement(connection, "SELECT 1")
        for _ in 0..<100 {
            let isOver = DispatchSemaphore(value: 0)
            Thread {
                _ = try? statement.first { $0.integer(0) }
                isOver.signal()
            }.start()
            isOver.wait()
            connection.occupy()
            let value = try statement.first { $0.integer(0) }
            #expect(value == 1)
            try connection.execute("SELECT 1")
            connection.vacate()
        }
        try connection.close()
    }
}
