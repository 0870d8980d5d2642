/// What may not be there, such as a property, and what is in it: `document["address"]["lines"][0]` instead of
/// `document["address"]?["lines"]?[0]`.
extension Optional<JSONValue> {
    /// The member of that key; nil where there is none, where the value is no object, and where there is no value.
    public subscript(key: String) -> JSONValue? {
        flatMap { value in value[key] }
    }

    /// The element at that place of the list; nil where there is none, where the value is no list, and where there is no value.
    public subscript(index: Int) -> JSONValue? {
        flatMap { value in value[index] }
    }
}
