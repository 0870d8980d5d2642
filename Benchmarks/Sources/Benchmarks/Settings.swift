internal import Foundation

/// What the command line asks for.
struct Settings {
    /// Smaller sizes, for a run of some seconds: its figures are rough.
    var isQuick = false
    var writesJSON = false
    var roundCount = 7
    /// Parts of the names of the rows to measure; empty for all.
    var only: [String] = []
    /// Where stores and files are made, in a directory of their own that is removed in the end.
    var parent = URL.temporaryDirectory

    static let usage = """
        usage: scripts/bench [--quick] [--json] [--rounds N] [--only PART]... [--directory PATH]

          --quick           smaller sizes: seconds instead of minutes, and rougher figures
          --json            one JSON object on standard output instead of the table
          --rounds N        how often each side of a comparison runs; default 7, at least 5
          --only PART       only rows with PART in their name; may be given several times
          --directory PATH  where to write; a disk with 5 GB to spare. Default: the temporary directory
        """

    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        func value(of option: String) throws(UsageError) -> String {
            guard let value = rest.popFirst() else { throw UsageError(text: "\(option) needs a value") }
            return value
        }
        while let option = rest.popFirst() {
            switch option {
            case "--quick":
                isQuick = true
                roundCount = 5
            case "--json": writesJSON = true
            case "--rounds":
                guard let count = Int(try value(of: option)), (5...1_000).contains(count) else {
                    throw UsageError(text: "--rounds takes a number from 5 to 1000")
                }
                roundCount = count
            case "--only": only.append(try value(of: option))
            case "--directory": parent = URL(filePath: try value(of: option), directoryHint: .isDirectory)
            default: throw UsageError(text: "what is \(option)?")
            }
        }
    }
}

struct UsageError: Error { let text: String }

/// A benchmark found something wrong: there is no figure for work that wasn't done.
struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

func expect(_ condition: Bool, _ what: @autoclosure () -> String) throws(Failure) {
    if !condition { throw Failure(what()) }
}
