internal import Foundation

extension Thread {
    /// Runs `body` on a thread of its own, for what waits for another process.
    static func startForMaintenance(_ body: @escaping @Sendable () -> Void) {
        let thread = Thread(block: body)
        thread.name = "coffer.maintenance"
        thread.start()
    }
}
