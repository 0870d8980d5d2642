internal import Coffer

/// Findings by what is wrong, a line for each: two damaged pages can bring hundreds, since what hangs on them can't be read.
struct FindingSummary {
    /// Those of one kind with the same words, up to the numbers in them.
    private struct Group {
        let first: VerificationFinding
        var subjects: [String]
        var count = 1
    }

    private struct Cause: Hashable {
        let kind: VerificationFinding.Kind
        let words: String
    }

    private var groups: [Group] = []
    private var places: [Cause: Int] = [:]

    /// So many of those that have the same cause are named.
    private static let namedCount = 3

    init(_ findings: [VerificationFinding]) {
        for finding in findings {
            let cause = Cause(kind: finding.kind, words: Self.withoutNumbers(finding.detail))
            if let place = places[cause] {
                groups[place].count += 1
                guard groups[place].subjects.count < Self.namedCount else { continue }
                if !groups[place].subjects.contains(finding.subject) { groups[place].subjects.append(finding.subject) }
            } else {
                places[cause] = groups.count
                groups.append(Group(first: finding, subjects: [finding.subject]))
            }
        }
    }

    /// Whether there are findings without a line of their own.
    var isShorter: Bool { groups.contains { $0.count > 1 } }

    /// A line for each cause, in the order in which the first of them was found.
    var lines: [String] {
        groups.map { group in
            let subject = group.first.subject, detail = group.first.detail
            guard group.count > 1 else { return "\(subject): \(detail)" }
            // What SQLite says of its pages is all about the same thing.
            guard group.subjects.count > 1 else {
                return "\(subject): \(detail), and \(group.count - 1) more like this"
            }
            let names = group.subjects.joined(separator: ", ")
            let restCount = group.count - group.subjects.count
            let rest = restCount > 0 ? " and \(restCount) more" : ""
            return "\(names)\(rest): \(detail)"
        }
    }

    private static func withoutNumbers(_ text: String) -> String {
        var words = ""
        for character in text {
            if !character.isNumber { words.append(character) } else if words.last != "0" { words.append("0") }
        }
        return words
    }
}
