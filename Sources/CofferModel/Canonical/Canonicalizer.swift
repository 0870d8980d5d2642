internal import CofferSealing

/// Checks JSON against RFC 8259 and makes canonical JSON of it, in one pass.
///
/// Text that is canonical already is copied in runs; what isn't (white space, needless escapes, numbers in another form)
/// is replaced on the way. Objects whose keys are out of order are noted and put in order by a second, copying pass. Nothing
/// recurses, so that no depth overflows the stack.
struct Canonicalizer {
    enum Mode {
        /// Any value.
        case value
        /// An object; its members whose keys start with `_` are noted, and left out but for `_attachments`.
        case document
        /// The same as another database says it: it may have `_revisions`.
        case foreignDocument
    }

    /// A member of a document whose key starts with `_`.
    struct ReservedMember {
        let key: ReservedKey
        /// Where the member starts, in the text that is written.
        let start: Int
        /// Where its value stands there.
        var value: Range<Int>
    }

    struct Container {
        let isObject: Bool
        /// Where it starts, in the text that is written.
        let start: Int
        /// Where its members start in `members`.
        let firstMember: Int
        /// Whether its members have been in order so far, and all are kept.
        var isInOrder = true
    }

    let mode: Mode

    /// More values than that are refused.
    let valueLimit: Int
    /// How many values have begun, containers included.
    var valueCount = 0
    /// Whether there are more than the limit.
    var isOverLimit = false

    /// What has been written; the input from `runStart` on isn't yet, and follows as it is.
    var output: [UInt8] = []
    var runStart = 0

    /// The containers that are open around the current one.
    var outer: [Container] = []
    /// The members of all open objects.
    var members: [ObjectMember] = []
    /// Whether the string read last has escapes.
    var hasEscapes = false
    /// The bytes of all keys with escapes.
    var unescapedKeys: [UInt8] = []

    /// The objects that the second pass changes, inner ones before the ones around them.
    var reordered: [ReorderedObject] = []
    var reorderedMembers: [ObjectMember] = []
    var reserved: [ReservedMember] = []

    init(_ mode: Mode, valueLimit: Int = JSONLimits.valueCount) {
        self.mode = mode
        self.valueLimit = valueLimit
        members.reserveCapacity(32)
    }

    // MARK: Results

    /// Whether the input, which was scanned, is canonical.
    var hasChangedNothing: Bool { runStart == 0 && reordered.isEmpty }

    /// Whether the input, which was scanned, is what ``normalized(_:)`` gives.
    var isNormalized: Bool { runStart == 0 }

    /// Canonical JSON of `input`, which was scanned.
    mutating func canonical(_ input: Span<UInt8>) -> [UInt8] {
        if reordered.isEmpty { return normalized(input) }
        // Inner objects were noted before the ones around them.
        if reordered.count > 1 { reordered.sort { $0.start < $1.start } }
        var result: [UInt8] = []
        // Not whether there is output: of white space that comes first there isn't one, and all places are behind it.
        if runStart == 0 {
            result.reserveCapacity(input.count)
            reorder(input, into: &result)
        } else {
            flush(input, upTo: input.count)
            result.reserveCapacity(output.count)
            reorder(output.span, into: &result)
        }
        return result
    }

    /// The same with the members in their original order, all of them.
    mutating func normalized(_ input: Span<UInt8>) -> [UInt8] {
        flush(input, upTo: input.count)
        return output
    }

    /// Copies `text`, putting the members of the noted objects in order.
    private func reorder(_ text: Span<UInt8>, into result: inout [UInt8]) {
        var open: [(object: ReorderedObject, nextMember: Int, limit: Int)] = []
        var (at, limit) = (0, text.count)
        while true {
            let next = firstReordered(from: at)
            if next < reordered.count, reordered[next].start < limit {
                let object = reordered[next]
                result.append(copying: text.extracting(at..<object.start))
                result.append(UInt8(ascii: "{"))
                open.append((object, object.members.lowerBound, limit))
            } else {
                result.append(copying: text.extracting(at..<limit))
            }
            guard let innermost = open.last else { return }
            let (object, member, outerLimit) = innermost
            if member < object.members.upperBound {
                if member > object.members.lowerBound { result.append(UInt8(ascii: ",")) }
                open[open.count - 1].nextMember += 1
                (at, limit) = (Int(reorderedMembers[member].start), Int(reorderedMembers[member].end))
            } else {
                result.append(UInt8(ascii: "}"))
                open.removeLast()
                (at, limit) = (object.end, outerLimit)
            }
        }
    }

    /// The first of the noted objects that starts at `position` or later.
    private func firstReordered(from position: Int) -> Int {
        var (low, high) = (0, reordered.count)
        while low < high {
            let middle = (low + high) / 2
            if reordered[middle].start < position { low = middle + 1 } else { high = middle }
        }
        return low
    }

    // MARK: Writing

    /// Where in the text that is written the input's `position` comes to stand, unless something before it is replaced yet.
    @inline(__always)
    func written(_ position: Int) -> Int { output.count + (position - runStart) }

    /// Writes the input up to `position`.
    mutating func flush(_ input: Span<UInt8>, upTo position: Int) {
        guard position > runStart else { return }
        if output.isEmpty { output.reserveCapacity(input.count) }
        output.append(copying: input.extracting(runStart..<position))
        runStart = position
    }

    /// Leaves out the input between `start` and `end`.
    mutating func skip(_ input: Span<UInt8>, from start: Int, to end: Int) {
        flush(input, upTo: start)
        runStart = end
    }
}

/// What JSON Coffer reads and writes, at most.
package enum JSONLimits {
    /// The bytes of one document, as they come and in canonical form. More belongs into an attachment; and positions within
    /// a document fit into 32 bits, with room to spare.
    package static let byteCount = 64 << 20

    /// The values of one document, or of another text that is read into values: elements, members and containers, each counted
    /// once. Two bytes of text can be a value, which takes some fifty times as much memory, so that a bound on bytes alone lets
    /// 64 MiB of text become gigabytes.
    package static let valueCount = 1 << 20

    /// What is stored was within the bounds of its time, and is read whatever they are now.
    package static let storedValueCount = Int.max

    /// The most memory that one value takes beside its text, in bytes: an element or a member, with its share of the container
    /// around it and of the table in which members are looked up.
    package static let valueByteCost = 160

    /// How deep arrays and objects nest, as in other JSON libraries: readers in languages that recurse keep up.
    package static let depth = 512

    /// How many containers of a message may be around a document.
    static let frameDepth = 8
}

extension CofferError {
    /// JSON that is refused because of what stands at byte `offset`. Never with what stands there.
    static func invalidJSON(_ what: String, at offset: Int) -> CofferError {
        CofferError(.invalidJSON, "\(what) at byte \(offset)")
    }

    static var tooManyValues: CofferError { CofferError(.invalidJSON, "more than \(JSONLimits.valueCount) values") }
}
