internal import Coffer
@_spi(Tool) internal import CofferKeys

/// Lines of JSON, each of which ends with the SHA-256 of the one before: what was changed, put in or cut out between them shows.
///
/// What was cut off at the end does not, unless somebody has kept ``last`` elsewhere.
struct ReceiptChain: Sendable {
    /// What the first line says of the one before.
    private static let beginning = String(repeating: "0", count: 64)
    private static let member = "previous"

    /// The SHA-256 of the last line, without its line end, in hexadecimal.
    private(set) var last = beginning

    /// How many lines there are.
    private(set) var count = 0

    /// Adds a line, and returns it as it is written, with its line end.
    mutating func add(_ line: JSONLine) throws(Failure) -> [UInt8] {
        var line = line
        line.add(Self.member, last)
        let bytes = Array(line.finished.utf8)
        try take(bytes)
        return bytes + [UInt8(ascii: "\n")]
    }

    /// Goes on with a line that was read, without its line end. False where it does not follow, and then nothing is changed.
    mutating func follow(_ line: some Collection<UInt8>) throws(Failure) -> Bool {
        guard line.suffix(ending.count).elementsEqual(ending) else { return false }
        try take(Array(line))
        return true
    }

    /// What the next line ends with.
    private var ending: [UInt8] { Array(",\"\(Self.member)\":\"\(last)\"}".utf8) }

    private mutating func take(_ line: [UInt8]) throws(Failure) {
        do throws(CofferError) {
            last = hexadecimal(try sha256(of: line))
        } catch {
            throw Failure(error)
        }
        count += 1
    }
}
