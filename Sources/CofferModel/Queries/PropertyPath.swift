/// The path of a property in a document: names of members, and places in lists.
///
/// `address.city` is the member `city` of the object `address`, `tags[0]` the first element of the list `tags`. A backslash
/// takes the character after it as part of a name: `a\.b` is one member. `_id` is the document's id. Every text is a path.
///
/// `tags[]` stands for each element of the list, and `items[].price` for that member of each, where an index is declared: see
/// `createIndex(named:on:)`. Elsewhere nothing is there.
public struct PropertyPath: Sendable, Hashable, ExpressibleByStringInterpolation, CustomStringConvertible {
    /// A step into a value.
    enum Step: Sendable, Hashable {
        case member(String)
        case element(Int)
        /// Every element of a list.
        case eachElement

        static func == (left: Step, right: Step) -> Bool {
            switch (left, right) {
            case (.member(let left), .member(let right)): haveSameBytes(left, right)
            case (.element(let left), .element(let right)): left == right
            case (.eachElement, .eachElement): true
            default: false
            }
        }

        func hash(into hasher: inout Hasher) {
            switch self {
            case .member(let name): name.hashBytes(into: &hasher)
            case .element(let place): hasher.combine(place)
            case .eachElement: hasher.combine(-1)
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
                places.append(place)
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

    init(steps: [Step]) { self.steps = steps }

    /// The value that paths begin at, in what is said of a list's elements.
    package static let itself = PropertyPath(steps: [])

    /// Where `path` leads from here.
    package func appending(_ path: PropertyPath) -> PropertyPath { PropertyPath(steps: steps + path.steps) }

    /// Where `path` leads from each element of the list here.
    package func ofEachElement(_ path: PropertyPath) -> PropertyPath {
        PropertyPath(steps: steps + [.eachElement] + path.steps)
    }

    /// The path without its first step, if that is the member of that name.
    func dropping(member name: String) -> PropertyPath? {
        steps.first == .member(name) ? PropertyPath(steps: Array(steps.dropFirst())) : nil
    }

    /// Whether it stands for what is in a list's elements, of which there may be many.
    package var isOverElements: Bool { steps.contains(.eachElement) }

    /// `[n]` or `[]` at the start of `text`, and how many characters it has.
    private static func place(_ text: Substring) -> (Step, Int)? {
        if text.dropFirst().first == "]" { return (.eachElement, 2) }
        let digits = text.dropFirst().prefix { $0.isASCII && $0.isNumber }
        guard let place = Int(digits), text.dropFirst(1 + digits.count).first == "]" else { return nil }
        return (.element(place), digits.count + 2)
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

    /// The value there; nil if there isn't one.
    ///
    /// - Parameter id: the document's.
    package func value(in properties: JSONObject, id: String) -> JSONValue? {
        value(from: .document(properties, id: id))
    }

    func value(from root: PathRoot) -> JSONValue? {
        var value: JSONValue
        var rest = steps[...]
        switch root {
        case .document(let properties, let id):
            if isDocumentID { return .string(id) }
            guard case .member(let first)? = rest.popFirst(), let member = properties[first] else { return nil }
            value = member
        case .element(let element):
            value = element
        }
        for step in rest {
            guard let next = value[step] else { return nil }
            value = next
        }
        return value
    }

    /// What is there in each of the lists' elements, where ``isOverElements``; nil for an element without it. Otherwise the one
    /// value, or nil.
    ///
    /// - Parameter id: the document's.
    package func values(in properties: JSONObject, id: String) -> [JSONValue?] {
        guard let place = steps.firstIndex(of: .eachElement) else { return [value(in: properties, id: id)] }
        var values = [PropertyPath(steps: Array(steps[..<place])).value(in: properties, id: id)]
        for step in steps[place...] {
            if step == .eachElement {
                values = values.flatMap { value in
                    if case .array(let elements)? = value { elements.map { Optional($0) } } else { [JSONValue?]() }
                }
            } else {
                values = values.map { $0.flatMap { $0[step] } }
            }
        }
        return values
    }
}

/// Where paths begin.
enum PathRoot {
    case document(JSONObject, id: String)
    /// An element of a list.
    case element(JSONValue)
}

extension JSONValue {
    fileprivate subscript(step: PropertyPath.Step) -> JSONValue? {
        switch step {
        case .member(let name): self[name]
        case .element(let place): self[place]
        case .eachElement: nil
        }
    }
}

extension PropertyPath.Step {
    /// The step as it stands in a path, without the dot before it.
    fileprivate var text: String {
        switch self {
        case .element(let place): return "[\(place)]"
        case .eachElement: return "[]"
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
