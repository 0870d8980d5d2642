/// What a test expected of a store and did not find.
///
/// It is thrown, so that it fails a test of any framework. Its description names files, offsets and kinds of keys, and
/// holds no key and no marker.
public struct ExpectationFailure: Error, Sendable, CustomStringConvertible {
    /// What was expected, in a few words.
    public let expectation: String

    /// What was found instead, a line for each thing.
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
