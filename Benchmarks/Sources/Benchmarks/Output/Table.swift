internal import Foundation

/// Words in rows and columns.
struct Table {
    let head: [String]
    let rows: [[String]]

    /// In columns, for a terminal.
    var text: String {
        let all = [head] + rows
        let widths = head.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        return all.map { row in
            zip(row, widths).map { cell, width in
                cell + String(repeating: " ", count: width - cell.count + 2)
            }.joined().trimmingCharacters(in: .whitespaces)
        }.joined(separator: "\n")
    }

    var markdown: String {
        ([head, head.map { _ in "---" }] + rows).map { "| \($0.joined(separator: " | ")) |" }.joined(separator: "\n")
    }
}
