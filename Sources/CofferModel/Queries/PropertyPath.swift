/// Where a property stands in a document: names of members, and places in lists.
///
/// `address.city` is the member `city` of the object `address`, `tags[0]` the first element of the list `tags`. A backslash
/// takes the character after it as part of a name: `a\.b` is one member. `_id` is the document's id. Every text is a path.
public struct PropertyPath: Sendable, Hashable, ExpressibleByStringInterpolation, CustomStringConvertible {
    /// A step into a value.
    enum Step: Sendable, Hashable {
        case member(String)
        case element(Int)

        static func == (left: Step, right: Step) -> Bool {
            switch (left, right) {
            case (.member(let left), .member(let right)): haveSameBytes(left, right)
            case (.element(let left), .element(let right)): left == right
            default: false
            }
        }

        func hash(into hasher: inout Hasher) {
            switch self {
            case .member(let name): name.hashBytes(into: &hasher)
            case .element(let place): hasher.combine(place)
            }
        }
    }

    let steps: [Step]

    /// The path that `text` says.
    public init(_ text: String) {
        var steps: [Step] = []
        var (name, places) = ("", [Step]())
        // Whether what was read of a name may still get places, and only those.
        var isNameOver = false
        var rest = Substring(text)
        func end() {
            steps.append(.member(name))
            steps += places
            (name, places, isNameOver) = ("", [], false)
        }
        while let character = rest.unicodeScalars.first {
            if character == "[", let (place, count) = Self.place(rest) {
                places.append(.element(place))
                isNameOver = true
                rest = rest.dropFirst(count)
                continue
            }
            rest.unicodeScalars.removeFirst()
            if character == "." {
                end()
            } else {
                // What follows a place without a dot belongs to the name, and so does the place.
                if isNameOver { name += places.map(\.text).joined() }
                (places, isNameOver) = ([], false)
                if character == "\\", let escaped = rest.unicodeScalars.popFirst() {
                    name.unicodeScalars.append(escaped)
                } else {
                    name.unicodeScalars.append(character)
                }
            }
        }
        end()
        self.steps = steps
    }

    /// The path that a literal says.
    public init(stringLiteral text: String) { self.init(text) }

    /// `[n]` at the start of `text`, and how many characters it has.
    private static func place(_ text: Substring) -> (Int, Int)? {
        let digits = text.dropFirst().prefix { $0.isASCII && $0.isNumber }
        guard let place = Int(digits), text.dropFirst(1 + digits.count).first == "]" else { return nil }
        return (place, digits.count + 2)
    }

    /// The path as text that says it again.
    public var description: String {
        var text = ""
        for (index, step) in steps.enumerated() {
            if index > 0, case .member = step { text += "." }
            text += step.text
        }
        return text
    }

    /// Whether it is the document's id.
    package var isDocumentID: Bool { steps == [.member("_id")] }

    /// The value there; nil where there is none.
    ///
    /// - Parameter id: the document's.
    package func value(in properties: JSONObject, id: String) -> JSONValue? {
        if isDocumentID { return .string(id) }
        guard case .member(let first)? = steps.first, var value = properties[first] else { return nil }
        for step in steps.dropFirst() {
            let next: JSONValue? =
                switch step {
                case .member(let name): value[name]
                case .element(let place): value[place]
                }
            guard let next else { return nil }
            value = next
        }
        return value
    }
}

extension PropertyPath.Step {
    /// The step as it stands in a path, without the dot before it.
    fileprivate var text: String {
        switch self {
        case .element(let place): return "[\(place)]"
        case .member(let name):
            var text = ""
            for character in name.unicodeScalars {
                if character == "." || character == "\\" || character == "[" { text += "\\" }
                text.unicodeScalars.append(character)
            }
            return text
        }
    }
}
