internal import Coffer

extension SkippedEntry {
    /// A line of JSON.
    var json: String {
        var line = JSONLine(type: "skipped")
        line.add("path", path)
        line.add("detail", reason)
        return line.finished
    }
}
