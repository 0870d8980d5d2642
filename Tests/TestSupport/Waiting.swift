import Foundation

/// How long a test waits for what must happen before it says that it doesn't: longer than anything takes on a busy machine, with a
/// sanitizer.
package let longestWait = Duration.seconds(1_200)

/// Waits until `condition` holds.
///
/// - Returns: false if it doesn't come to that.
package func eventually(_ condition: () throws -> Bool) rethrows -> Bool {
    let end = ContinuousClock.now + longestWait
    while try !condition() {
        guard ContinuousClock.now < end else { return false }
        Thread.sleep(forTimeInterval: 0.002)
    }
    return true
}

/// Waits until `condition` holds, without keeping a thread.
///
/// - Returns: false if it doesn't come to that.
package func eventually(_ condition: () throws -> Bool) async throws -> Bool {
    let end = ContinuousClock.now + longestWait
    while try !condition() {
        guard ContinuousClock.now < end else { return false }
        try await Task.sleep(for: .milliseconds(5))
    }
    return true
}
