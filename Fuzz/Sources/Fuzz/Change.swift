import Foundation

/// One change of a file's bytes, as the fuzzer's bytes say: a bit, some bytes, a cut, or parts moved about.
struct Change {
    private let kind: UInt8
    private let offset: Int
    private let other: Int
    private let count: Int
    private let bytes: [UInt8]
    private let unit: Int
    private let start: Int

    /// `unit` is the size of what the file is made of, from `start` on.
    init(_ choices: inout Choices, size: Int, unit: Int, start: Int) {
        (self.unit, self.start) = (unit, start)
        kind = choices.byte()
        offset = choices.number(below: size)
        switch kind % 8 {
        case 0, 1:
            bytes = choices.take(Int(choices.byte() % 33))
            (other, count) = (0, 0)
        case 2...6:
            other = choices.number(below: size)
            count = choices.number(below: unit * 2)
            bytes = []
        default: (other, count, bytes) = (0, 0, [])
        }
    }

    func apply(to data: inout Data) {
        guard !data.isEmpty else { return }
        let offset = min(offset, data.count - 1)
        switch kind % 8 {
        case 0: data[offset] ^= bytes.first ?? 1
        case 1: data.replaceSubrange(offset..<min(offset + bytes.count, data.count), with: bytes)
        case 2: data.removeSubrange(offset..<min(offset + count, data.count))
        case 3: data.insert(contentsOf: data.dropFirst(other).prefix(count), at: offset)
        case 4:
            let part = Array(data.dropFirst(other).prefix(count).prefix(data.count - offset))
            data.replaceSubrange(offset..<offset + part.count, with: part)
        case 5:
            // A page or a chunk in another's place.
            let (from, to) = (other / unit * unit + start, offset / unit * unit + start)
            let part = Array(data.dropFirst(from).prefix(unit).prefix(max(0, data.count - to)))
            if to < data.count { data.replaceSubrange(to..<to + part.count, with: part) }
        case 6: data.resetBytes(in: offset..<min(offset + count, data.count))
        default: data = Data(data.prefix(offset))
        }
    }
}
