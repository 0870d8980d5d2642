internal import Foundation

/// What the command line asks for.
struct Settings {
    /// Smaller sizes, for a run of a minute: its figures are rough.
    private(set) var isQuick = false
    private(set) var roundCount = 5
    /// Parts of the names of the groups to measure; empty for all.
    private(set) var only: [String] = []
    /// Where stores and files are made, in a directory of their own that is removed in the end.
    private(set) var parent = URL.temporaryDirectory

    private(set) var json: URL?
    private(set) var markdown: URL?
    private(set) var chart: URL?
    /// What to compare with, and what to write for that.
    private(set) var baselineToCheck: URL?
    private(set) var baselineToWrite: URL?

    /// Programs that do the same with something else.
    private(set) var others: [Contender] = []
    private(set) var listsGroups = false
    /// Whether the storage engines are compared with each other, and nothing else is measured.
    private(set) var comparesEngines = false

    static let usage = """
        usage: scripts/bench [--quick] [--engines] [--others] [--json FILE] [--markdown FILE] [--chart FILE] [--check FILE]
                             [--rounds N] [--only PART]... [--directory PATH]

        Prints a table, and says on standard error how far it is. A whole run takes about a quarter of an hour.

          --quick           smaller sizes: a minute, and rougher figures
          --engines         instead of all this: the storage engines, sealed pages beside SQLCipher
          --others          also GRDB on SQLite, SQLCipher from Python and files encrypted by `cryptography`, where they
                            can be had
          --json FILE       all figures, as Benchmarks/README.md describes
          --markdown FILE   the tables as docs/SPEED.md has them
          --chart FILE      an SVG picture: bars of the ratios with their targets, and lines of what grows
          --check FILE      fails where a ratio is less than half as good as in FILE, three times in a row, or is missing
          --baseline FILE   writes a file for --check
          --rounds N        how often each side of a comparison runs; default 5, at least 3; with --quick 3
          --only PART       only groups of rows with PART in their name; may be given several times
          --list            the names of the groups
          --directory PATH  where to write; a disk with 30 GB to spare, or 4. Default: the temporary directory
        """

    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        func value(of option: String) throws(UsageError) -> String {
            guard let value = rest.popFirst() else { throw UsageError(text: "\(option) needs a value") }
            return value
        }
        func file(of option: String) throws(UsageError) -> URL { URL(filePath: try value(of: option)) }
        while let option = rest.popFirst() {
            switch option {
            case "--quick":
                isQuick = true
                roundCount = 3
            case "--engines": comparesEngines = true
            case "--json": json = try file(of: option)
            case "--markdown": markdown = try file(of: option)
            case "--chart": chart = try file(of: option)
            case "--check": baselineToCheck = try file(of: option)
            case "--baseline": baselineToWrite = try file(of: option)
            case "--rounds":
                guard let count = Int(try value(of: option)), (3...1_000).contains(count) else {
                    throw UsageError(text: "--rounds takes a number from 3 to 1000")
                }
                roundCount = count
            case "--only": only.append(try value(of: option))
            case "--list": listsGroups = true
            case "--directory": parent = URL(filePath: try value(of: option), directoryHint: .isDirectory)
            // From scripts/bench --others.
            case "--grdb": others.append(.grdb(try file(of: option)))
            case "--python": others += Contender.python(try file(of: option), script: try file(of: option))
            default: throw UsageError(text: "what is \(option)?")
            }
        }
        if baselineToCheck != nil || baselineToWrite != nil, !only.isEmpty || comparesEngines {
            throw UsageError(text: "a baseline is of all rows: no --only and no --engines with it")
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
