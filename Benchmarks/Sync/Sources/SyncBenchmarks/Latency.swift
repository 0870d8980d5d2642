import Coffer
import CofferSync
import Foundation

/// What a server costs whose answers come 50 ms later: how many times as long as the same without that a transfer takes.
struct Latency {
    let work: Work
    let roundCount: Int

    private static let delay = Duration.milliseconds(50)

    func run() async throws {
        let source = try await work.database("source")
        try work.fill(source)
        let proxy = try DelayingProxy(to: work.port, delay: Self.delay)
        var (pushes, pulls): ([[Double]], [[Double]]) = ([], [])
        var (pushCount, pullCount) = (0, 0)
        for round in 0...roundCount {
            var options = ReplicationOptions()
            options.createsTarget = true
            var (push, pull): ([Double], [Double]) = ([], [])
            for port in [work.port, proxy.port] {
                let target = "pushed-\(round)-\(port)"
                let url = work.url(target, port: port)
                push.append(
                    try await measure {
                        try work.expectAll(try await Replication(push: source, to: url, options: options).run(), "push")
                    })
                pushCount = max(pushCount, proxy.takeRequestCount())
                let copy = try await work.database("pulled-\(round)-\(port)")
                pull.append(
                    try await measure {
                        try work.expectAll(try await Replication(pull: url, into: copy).run(), "pull")
                    })
                pullCount = max(pullCount, proxy.takeRequestCount())
                try await copy.close()
            }
            guard round > 0 else { continue }
            pushes.append(push)
            pulls.append(pull)
        }
        for (name, times, count) in [("push", pushes, pushCount), ("pull", pulls, pullCount)] {
            // What is waited for is the same whatever the transfer itself takes.
            let waited = times.map { $0[1] - $0[0] }.sorted()[times.count / 2]
            report(
                "\(name), 50 ms away, \(work.size): \(count) requests, \(Int(waited / 0.05)) delays",
                times.map { $0[1] / $0[0] }, of: "times its own time", atMost: 10)
        }
    }
}
