import Foundation

@testable import Coffer
import TestSupport

/// What a process that will be killed has been told, kept by the system: one line each, appended in one write.
///
/// A line stands for a promise: what it names was acknowledged before it was written.
struct Journal {
    let path: String

    func note(_ line: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        let bytes = Array((line + "\n").utf8)
        guard write(descriptor, bytes, bytes.count) == bytes.count else { throw CofferError(.ioFailed, "no journal") }
    }

    var lines: [String] {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [] }
        return text.split(separator: "\n").map(String.init)
    }

    /// Waits until a line is there, and returns it. Nil when none comes.
    func waitForLine() -> String? {
        var line: String?
        _ = eventually {
            line = lines.first
            return line != nil
        }
        return line
    }
}

/// Ends this process as a kill from outside does: nothing of it runs any more.
func killOneself() -> Never {
    kill(getpid(), SIGKILL)
    while true { sleep(1) }
}

/// Has this process killed after some time, whatever it does then.
func killOneself(after time: Duration) {
    Thread {
        Thread.sleep(forTimeInterval: time.seconds); killOneself()
    }.start()
}
