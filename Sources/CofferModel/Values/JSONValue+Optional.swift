/// What may not be there, such as a property, and what is in it: `document["address"]["lines"][0]` instead of
/// `document["address"]?["lines"]?[0]`.
extension Optional<JSONValue> {
    /// The member of that key, or nil if the value is missing, is not an object, or has no such member.
    public subscript(key: String) -> JSONValue? {
        flatMap { value in value[key] }
    }

    /// The element at that place, or nil if the value is missing, is not a list, or is shorter.
    public subscript(index: Int) -> JSONValue? {
        flatMap { value in value[index] }
    }
}
