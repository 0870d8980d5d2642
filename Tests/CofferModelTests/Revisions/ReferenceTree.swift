import CofferSealing
import Testing

@testable import CofferModel

/// Revisions as a plain list of parents, with every question answered by looking at all of it: slow, and simple enough to be
/// right. Ids are text, and compared by a way of their own.
struct ReferenceTree {
    struct Entry {
        var parent: String?
        var isDeletion: Bool
    }

    var entries: [String: Entry] = [:]

    static func generation(_ id: String) -> Int { Int(id.split(separator: "-")[0]) ?? 0 }
    static func suffix(_ id: String) -> [UInt8] { Array(id.utf8.drop { $0 != UInt8(ascii: "-") }.dropFirst()) }

    /// Whether `left` is the better leaf.
    func isBetter(_ left: String, _ right: String) -> Bool {
        let (l, r) = (entries[left]?.isDeletion ?? false, entries[right]?.isDeletion ?? false)
        if l != r { return r }
        if Self.generation(left) != Self.generation(right) { return Self.generation(left) > Self.generation(right) }
        return Self.suffix(right).lexicographicallyPrecedes(Self.suffix(left))
    }

    var leaves: [String] {
        let parents = Set(entries.values.compactMap(\.parent))
        return entries.keys.filter { !parents.contains($0) }.sorted { isBetter($0, $1) }
    }

    func line(of id: String) -> [String] {
        var line: [String] = []
        var next: String? = id
        while let id = next, let entry = entries[id] {
            line.append(id)
            next = entry.parent
        }
        return line
    }

    /// - Returns: whether it is new.
    mutating func insert(_ history: [String], isDeletion: Bool, depth: Int) -> Bool {
        if entries[history[0]] != nil { return false }
        for (index, id) in history.enumerated() {
            if entries[id] != nil { break }
            entries[id] = Entry(
                parent: index + 1 < history.count ? history[index + 1] : nil, isDeletion: index == 0 && isDeletion)
        }
        prune(depth)
        return true
    }

    mutating func prune(_ depth: Int) {
        let kept = Set(leaves.flatMap { line(of: $0).prefix(depth) })
        entries = entries.filter { kept.contains($0.key) }
        forgetMissingParents()
    }

    mutating func purge(_ ids: Set<String>) -> Set<String> {
        let kept = Set(leaves.filter { !ids.contains($0) }.flatMap { line(of: $0) })
        let removed = Set(entries.keys).subtracting(kept)
        entries = entries.filter { kept.contains($0.key) }
        forgetMissingParents()
        return removed
    }

    private mutating func forgetMissingParents() {
        for (id, entry) in entries where entry.parent.map({ entries[$0] == nil }) ?? false {
            entries[id]?.parent = nil
        }
    }
}
