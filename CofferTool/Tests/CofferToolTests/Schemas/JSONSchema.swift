import Foundation

/// A JSON Schema of draft 2020-12, as far as docs/schemas uses it. A keyword that it doesn't know is an error, and not ignored.
struct JSONSchema {
    struct Unknown: Error { let keyword: String }

    static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../../../docs/schemas").standardizedFileURL

    private let keywords: [String: Any]

    /// The schema of lines of that type; nil where there is none.
    init?(type: String) throws {
        guard let data = try? Data(contentsOf: Self.folder.appending(path: "\(type).json")),
            let object = try JSONSerialization.jsonObject(with: data) as? [String: Any]
        else { return nil }
        keywords = object
    }

    private init(_ keywords: [String: Any]) { self.keywords = keywords }

    /// What of `value` is other than the schema says.
    func problems(_ value: Any, at path: String = "$") throws -> [String] {
        var problems: [String] = []
        for (keyword, argument) in keywords {
            switch keyword {
            case "$schema", "$id", "title", "description": break
            case "type" where !Self.has(value, type: argument as? String ?? ""):
                problems.append("\(path): no \(argument)")
            case "const" where !((argument as? NSObject)?.isEqual(value) ?? false):
                problems.append("\(path): not \(argument)")
            case "enum" where !((argument as? [NSObject])?.contains { $0.isEqual(value) } ?? false):
                problems.append("\(path): none of \(argument)")
            case "pattern":
                guard let text = value as? String else { break }
                if try text.firstMatch(of: Regex(argument as? String ?? "")) == nil {
                    problems.append("\(path): \(text) is not like \(argument)")
                }
            case "minimum", "maximum":
                guard let number = value as? NSNumber, let limit = argument as? NSNumber else { break }
                let isBeyond =
                    keyword == "minimum" ? number.int64Value < limit.int64Value : number.int64Value > limit.int64Value
                if isBeyond { problems.append("\(path): \(number) is beyond \(limit)") }
            case "items":
                for (index, item) in (value as? [Any] ?? []).enumerated() {
                    problems += try Self.schema(argument).problems(item, at: "\(path)[\(index)]")
                }
            case "required":
                let object = value as? [String: Any] ?? [:]
                problems += (argument as? [String] ?? []).filter { object[$0] == nil }.map { "\(path): no \($0)" }
            case "properties":
                for (name, schema) in argument as? [String: Any] ?? [:] {
                    guard let member = (value as? [String: Any])?[name] else { continue }
                    problems += try Self.schema(schema).problems(member, at: "\(path).\(name)")
                }
            case "additionalProperties":
                guard argument as? Bool == false else { throw Unknown(keyword: "additionalProperties: \(argument)") }
                let known = keywords["properties"] as? [String: Any] ?? [:]
                let others = (value as? [String: Any] ?? [:]).keys.filter { known[$0] == nil }
                problems += others.map { "\(path): \($0) is in no schema" }
            case "oneOf", "anyOf":
                let all = try (argument as? [Any] ?? []).map { try Self.schema($0).problems(value, at: path) }
                let count = all.filter(\.isEmpty).count
                if count == 0 || (keyword == "oneOf" && count > 1) {
                    problems.append("\(path): \(count) of \(all.count) shapes: \(all)")
                }
            case "$ref":
                let name = (argument as? String ?? "").replacing(".json", with: "")
                guard let schema = try JSONSchema(type: name) else { throw Unknown(keyword: "$ref to \(name)") }
                problems += try schema.problems(value, at: path)
            case "type", "const", "enum": break
            default: throw Unknown(keyword: keyword)
            }
        }
        return problems
    }

    private static func schema(_ value: Any) -> JSONSchema { JSONSchema(value as? [String: Any] ?? ["unknown": value]) }

    private static func has(_ value: Any, type: String) -> Bool {
        let number = value as? NSNumber
        // Foundation has numbers and truth values in one class; of these JSON makes characters.
        let isBoolean = number.map { String(cString: $0.objCType) == "c" } ?? false
        return switch type {
        case "object": value is [String: Any]
        case "array": value is [Any]
        case "string": value is String
        case "null": value is NSNull
        case "boolean": isBoolean
        case "integer": !isBoolean && number.map { $0.doubleValue == $0.doubleValue.rounded() } == true
        default: false
        }
    }
}
