import Foundation

/// A document's revisions as one path of ids for each leaf, the newest first, as long as they are kept: written without a
/// look at how Coffer keeps them. There is no tree in it, and nothing ever has to be removed from one.
struct PathModel {
    struct Leaf {
        var path: [String]
        var isDeletion: Bool
        var json: String
    }

    private(set) var leaves: [Leaf] = []
    /// Which id comes before which, as long as both are there.
    private var parents: [String: String] = [:]

    var isEmpty: Bool { leaves.isEmpty }

    /// All ids that are there.
    var known: Set<String> { Set(leaves.flatMap(\.path)) }

    /// The ids from `id` back, as far as all leaves together remember.
    func path(of id: String) -> [String] {
        var path = [id]
        while let parent = path.last.flatMap({ parents[$0] }) { path.append(parent) }
        return path
    }

    private mutating func forgetParents() {
        let known = known
        parents = parents.filter { known.contains($0.key) && known.contains($0.value) }
    }

    /// - Returns: whether it is new.
    mutating func add(_ history: [String], isDeletion: Bool, json: String, depth: Int) -> Bool {
        let known = known
        if known.contains(history[0]) { return false }
        let joint = history.firstIndex { known.contains($0) }
        let path = history[..<(joint ?? history.count)] + (joint.map { self.path(of: history[$0]) } ?? [])
        if let joint { leaves.removeAll { $0.path[0] == history[joint] } }
        for (child, parent) in zip(path, path.dropFirst()) { parents[child] = parent }
        leaves.append(Leaf(path: Array(path.prefix(depth)), isDeletion: isDeletion, json: json))
        forgetParents()
        return true
    }

    /// Makes this the number of revisions that each leaf keeps: fewer, or more where another leaf has kept them.
    mutating func keep(_ depth: Int) {
        for index in leaves.indices { leaves[index].path = Array(leaves[index].path.prefix(depth)) }
        let paths = leaves.map { path(of: $0.path[0]).prefix(depth) }
        for index in leaves.indices { leaves[index].path = Array(paths[index]) }
        forgetParents()
    }

    mutating func purge(_ ids: Set<String>) {
        leaves.removeAll { ids.contains($0.path[0]) }
        forgetParents()
    }

    /// The leaves, the winner first.
    var sorted: [Leaf] {
        leaves.sorted { left, right in
            if left.isDeletion != right.isDeletion { return right.isDeletion }
            let (l, r) = (Self.parts(left.path[0]), Self.parts(right.path[0]))
            return l.0 != r.0 ? l.0 > r.0 : r.1.lexicographicallyPrecedes(l.1)
        }
    }

    private static func parts(_ id: String) -> (Int, [UInt8]) {
        let parts = id.split(separator: "-", maxSplits: 1)
        return (Int(parts[0]) ?? 0, Array(parts[1].utf8))
    }
}
