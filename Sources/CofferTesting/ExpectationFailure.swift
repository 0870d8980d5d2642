/// An expectation of a test that a store did not meet.
///
/// It is thrown, so that it fails a test of any framework. Its description names files, offsets and kinds of keys, and
/// holds no key and no marker.
public struct ExpectationFailure: Error, Sendable, CustomStringConvertible {
    /// The expectation, in a few words.
    public let expectation: String

    /// The findings that contradict it, one per line.
    public let complaints: [String]

    /// All of it, a line each.
    public var description: String { ([expectation + ":"] + complaints.map { "- " + $0 }).joined(separator: "\n") }

    init(_ expectation: String, _ complaints: [String]) {
        self.expectation = expectation
        self.complaints = complaints
    }

    /// Throws when there is anything to complain about.
    static func check(_ expectation: String, _ complaints: [String]) throws(ExpectationFailure) {
        guard complaints.isEmpty else { throw ExpectationFailure(expectation, complaints) }
    }
}
