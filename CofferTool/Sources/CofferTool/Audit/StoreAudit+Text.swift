internal import Coffer
internal import Foundation

extension StoreAudit {
    private func days(at now: Date) -> Int? { info.dataKeyAge(at: now).map { Int($0 / .seconds(86_400)) } }

    /// One line for people, and one more for each thing that is to be seen to.
    func text(_ violations: [AuditPolicy.Violation], at now: Date) -> String {
        let state = !violations.isEmpty ? "violates a rule" : info.isEncrypted ? "encrypted" : "not encrypted"
        var parts = ["generation \(info.generation)"]
        if let days = days(at: now) { parts.append("data key at least \(days) day\(days == 1 ? "" : "s") old") }
        if info.storageType == .sealed { parts.append("sealed pages") }
        parts += info.keySlots.map(\.kind.text)
        parts.append("\(sizes.databaseByteCount + sizes.contentByteCount) bytes")
        if !isWritable { parts.append("not to be written") }
        var lines = ["\(state)  \(Console.printable(path))  \(parts.joined(separator: ", "))"]
        lines += violations.map { "    \($0.text)" }
        lines += holders.map {
            "    process \($0.process)\($0.command.map { " (\(Console.printable($0)))" } ?? "") has it open"
        }
        lines += (leftovers ?? []).map { left in
            "    \(Console.printable(left.path)): an old generation, \(left.byteCount) bytes"
                + (left.mayBeReadable ? ", which may be readable without a key" : "")
        }
        return lines.joined(separator: "\n")
    }

    func json(_ violations: [AuditPolicy.Violation], at now: Date) -> String {
        var line = JSONLine(type: "store")
        line.add("path", path)
        line.add("encrypted", info.isEncrypted)
        line.add("engine", info.engine)
        line.add("uuid", info.storeUUID.uuidString.lowercased())
        line.add("generation", info.generation)
        line.add("sequence", info.sequence)
        if let created = info.dataKeyCreated { line.add("dataKeyCreated", created.ISO8601Format()) }
        if let days = days(at: now) { line.add("dataKeyDays", days) }
        line.add("keys", json: "[" + info.keySlots.map(\.json).joined(separator: ",") + "]")
        line.add("databaseBytes", sizes.databaseByteCount)
        line.add("contents", sizes.contentCount)
        line.add("contentBytes", sizes.contentByteCount)
        line.add("oldGenerations", json: leftovers?.json ?? "null")
        line.add("writable", isWritable)
        let holders = self.holders.map { holder in
            var line = JSONLine()
            line.add("pid", Int(holder.process))
            if let command = holder.command { line.add("command", command) }
            return line.finished
        }
        line.add("openIn", json: "[" + holders.joined(separator: ",") + "]")
        line.add("violations", json: "[" + violations.map { JSONLine.quoted($0.rawValue) }.joined(separator: ",") + "]")
        return line.finished
    }
}
