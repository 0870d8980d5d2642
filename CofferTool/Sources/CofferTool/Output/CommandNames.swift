internal import ArgumentParser

/// The names of commands, to suggest one where a command line has a name that doesn't exist.
enum CommandNames {
    /// A failure that says so where the command that `arguments` name, or one in a group such as `coffer key`, does not exist;
    /// nil for any other command line.
    static func failure(naming arguments: [String], below root: any ParsableCommand.Type) -> Failure? {
        var group = root
        var line = "coffer"
        for argument in arguments {
            // coffer help COMMAND
            if argument == "help" { continue }
            let commands = group.configuration.subcommands
            guard !commands.isEmpty, !argument.hasPrefix("-") else { return nil }
            if let command = commands.first(where: { $0.configuration.commandName == argument }) {
                group = command
                line += " \(argument)"
                continue
            }
            let names = commands.filter { $0.configuration.shouldDisplay }.compactMap { $0.configuration.commandName }
            let meant = nearest(to: argument, among: names).map { "did you mean \(line) \($0)? " } ?? ""
            return Failure.usage(
                "there is no command \(line) \(Console.printable(argument))",
                hint: "\(meant)\(line) --help lists the commands")
        }
        return nil
    }

    /// The name that `word` was probably meant to be; nil if none is near.
    static func nearest(to word: String, among names: [String]) -> String? {
        let candidates = names.map { (name: $0, distance: distance(Array(word.utf8), Array($0.utf8))) }
        // A typing error or two, of a word that is long enough to be told from others then.
        let limit = word.utf8.count < 4 ? 1 : 2
        return candidates.filter { $0.distance <= limit }.min { $0.distance < $1.distance }?.name
    }

    /// How many letters have to be added, left out, exchanged for others or with their neighbours (Damerau and Levenshtein's
    /// restricted distance).
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        // Whatever is longer than any command is far from all of them.
        guard left.count <= 32 else { return left.count }
        var rows = [Array(0...right.count)]
        for (i, letter) in left.enumerated() {
            var row = [i + 1]
            for (j, other) in right.enumerated() {
                var cost = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (letter == other ? 0 : 1))
                let isExchange = i > 0 && j > 0 && letter == right[j - 1] && left[i - 1] == other
                if isExchange { cost = min(cost, rows[i - 1][j - 1] + 1) }
                row.append(cost)
            }
            rows.append(row)
        }
        return rows[left.count][right.count]
    }
}
