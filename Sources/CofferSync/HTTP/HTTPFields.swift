/// The header fields of a message or of a part of one, in order. Names are compared without regard to case.
package struct HTTPFields: Sendable {
    package private(set) var all: [(name: String, value: String)] = []

    package init() {}

    /// The value of the first field of that name. Setting replaces all of that name; nil removes them.
    package subscript(name: String) -> String? {
        get { all.first { Self.isSame($0.name, name) }?.value }
        set {
            all.removeAll { Self.isSame($0.name, name) }
            if let newValue { add(name, newValue) }
        }
    }

    /// The values of all fields of that name.
    package func values(of name: String) -> [String] {
        all.filter { Self.isSame($0.name, name) }.map(\.value)
    }

    package mutating func add(_ name: String, _ value: String) { all.append((name, value)) }

    /// Whether a comma-separated field holds that word.
    package func contains(_ word: String, in name: String) -> Bool {
        values(of: name).contains { value in
            value.split(separator: ",").contains { Self.isSame($0.trimmed, word) }
        }
    }

    static func isSame(_ left: some StringProtocol, _ right: some StringProtocol) -> Bool {
        left.utf8.count == right.utf8.count && zip(left.utf8, right.utf8).allSatisfy { $0.lowercased == $1.lowercased }
    }
}

extension HTTPFields: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral fields: (String, String)...) {
        for (name, value) in fields { add(name, value) }
    }
}

extension UInt8 {
    /// ASCII's upper-case letters as lower-case ones.
    fileprivate var lowercased: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self + 32 : self
    }
}

extension StringProtocol {
    /// Without spaces and tabs around it.
    package var trimmed: String {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        let start = drop(while: isBlank)
        guard let end = start.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(start[...end])
    }
}
