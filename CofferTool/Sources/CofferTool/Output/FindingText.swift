internal import Coffer

extension VerificationFinding {
    /// A line of JSON. `isLost` is whether a salvage could bring it; nil if nobody has tried.
    func json(isLost: Bool? = nil) -> String {
        var line = JSONLine(type: "finding")
        line.add("kind", kind.description)
        if let isLost { line.add("lost", isLost) }
        line.add("subject", subject)
        line.add("detail", detail)
        if let page { line.add("page", page) }
        if let documentID { line.add("id", documentID) }
        if let digest { line.add("digest", digest) }
        return line.finished
    }
}
