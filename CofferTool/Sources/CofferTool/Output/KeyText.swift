internal import Coffer
internal import Foundation

extension StoreInfo.KeySlot.Kind {
    var text: String {
        switch self {
        case .scryptPassword(let n, let r, let p): "password, scrypt N=\(n) r=\(r) p=\(p)"
        case .pbkdf2Password(let iterations): "password, PBKDF2 \(iterations) iterations"
        case .bytes: "32 bytes"
        }
    }

    /// A word for programs, the numbers that go with it, and what people read.
    fileprivate func add(to line: inout JSONLine) {
        switch self {
        case .scryptPassword(let n, let r, let p):
            line.add("kind", "scryptPassword")
            line.add("n", n)
            line.add("r", r)
            line.add("p", p)
        case .pbkdf2Password(let iterations):
            line.add("kind", "pbkdf2Password")
            line.add("iterations", iterations)
        case .bytes: line.add("kind", "bytes")
        }
        line.add("description", text)
    }
}

extension StoreInfo.KeySlot {
    /// One line for people.
    var text: String { "\(id)  \(created.ISO8601Format())  \(kind.text)" }

    var json: String {
        var line = JSONLine(type: "key")
        line.add("id", id)
        line.add("created", created.ISO8601Format())
        kind.add(to: &line)
        return line.finished
    }
}

extension DatabaseKey {
    /// One line for people.
    var text: String {
        let label = label.map { "  " + Console.printable($0) } ?? ""
        return "\(isCurrent ? "*" : " ") \(id)  \(created.ISO8601Format())  \(kind.text)\(label)"
    }

    var json: String {
        var line = JSONLine(type: "key")
        line.add("id", id)
        line.add("created", created.ISO8601Format())
        kind.add(to: &line)
        if let label { line.add("label", label) }
        line.add("current", isCurrent)
        return line.finished
    }
}
