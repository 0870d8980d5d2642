/// What one check of a system found.
struct Finding {
    enum Verdict: String {
        case ok
        /// Worth knowing, and in nobody's way.
        case note
        /// Stores don't work here, or not safely.
        case problem
    }

    let check: String
    let verdict: Verdict
    let detail: String
    /// What it would have failed a command with.
    var failure: Failure?

    static func ok(_ check: String, _ detail: String) -> Finding {
        Finding(check: check, verdict: .ok, detail: detail)
    }

    static func note(_ check: String, _ detail: String) -> Finding {
        Finding(check: check, verdict: .note, detail: detail)
    }

    static func problem(_ check: String, _ failure: Failure) -> Finding {
        Finding(check: check, verdict: .problem, detail: failure.message, failure: failure)
    }

    var text: String {
        let column = check + String(repeating: " ", count: max(1, 16 - check.count))
        let mark =
            switch verdict {
            case .ok: ""
            case .note: "note: "
            case .problem: "PROBLEM: "
            }
        return column + mark + Console.printable(detail)
    }

    var json: String {
        var line = JSONLine(type: "check")
        line.add("check", check)
        line.add("verdict", verdict.rawValue)
        line.add("detail", detail)
        return line.finished
    }
}
