internal import CofferModel

/// The value of a parameter as it was sent: in a query, or as a member of a body.
enum ParameterValue {
    case text(String)
    case json(JSONValue)

    // MARK: What it says

    /// - Throws: ``SyncError`` 400 for a text that is not JSON.
    func json(_ name: String) throws(SyncError) -> JSONValue {
        switch self {
        case .json(let json): return json
        case .text(let text):
            guard let json = try? JSONValue(json: text.utf8) else { throw SyncError(400, "\(name) is not JSON") }
            return json
        }
    }

    /// - Throws: ``SyncError`` 400 for another value than a list in JSON.
    func list(_ name: String) throws(SyncError) -> [JSONValue] {
        guard let list = try json(name).arrayValue else { throw SyncError(400, "\(name) is not a list") }
        return list
    }

    /// - Throws: ``SyncError`` 400 for another value than a string in JSON.
    func id(_ name: String) throws(SyncError) -> String {
        guard let id = try json(name).stringValue else { throw SyncError(400, "\(name) is not a string in JSON") }
        return id
    }

    /// - Throws: ``SyncError`` 400 for what is not a number, and for one below zero.
    func count(_ name: String) throws(SyncError) -> Int {
        let count: Int? =
            switch self {
            case .text(let text): Int(text)
            case .json(let json): Int(jsonValue: json)
            }
        guard let count, count >= 0 else { throw SyncError(400, "\(name) is not a count") }
        return count
    }

    /// - Throws: ``SyncError`` 400 for another word than `true` and `false`.
    func isTrue(_ name: String) throws(SyncError) -> Bool {
        guard let flag = word.flatMap(Bool.init) else { throw SyncError(400, "\(name) is neither true nor false") }
        return flag
    }

    /// - Throws: ``SyncError`` 400 for a word that is not among these.
    func word(_ name: String, among words: [String]) throws(SyncError) -> String {
        guard let word, words.contains(word) else {
            throw SyncError(400, "\(name) must be one of \(words.joined(separator: ", "))")
        }
        return word
    }

    /// An id that stands as it is, or in JSON.
    var plainText: String {
        switch self {
        case .text(let text): text
        case .json(let json): json.stringValue ?? json.description
        }
    }

    /// In bodies, too, CouchDB takes the words.
    private var word: String? {
        switch self {
        case .text(let text): text
        case .json(let json): json.stringValue ?? json.boolValue.map { String($0) }
        }
    }
}
