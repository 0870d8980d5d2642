internal import Coffer

/// What is printed of one of many stores: what crosses from a process of the store's owner, too.
struct StoreLine: Codable {
    private let line: String
    private let warnings: [OldGenerationWarning]
    /// Why nothing can be said of the store.
    let failure: Failure?

    private init(line: String, warnings: [OldGenerationWarning], failure: Failure?) {
        (self.line, self.warnings, self.failure) = (line, warnings, failure)
    }

    /// Of a store, or a folder, of which nothing can be said.
    init(_ path: String, isJSON: Bool, failure: Failure) {
        self.init(
            line: isJSON ? failure.storeLine(path) : "unreadable     \(Console.printable(path))", warnings: [],
            failure: failure)
    }

    /// Looks at a store, which is opened where there is a key.
    static func describing(_ path: String, _ key: SymmetricKey?, isJSON: Bool) -> StoreLine {
        do {
            let store = try StoreDescription(path, key: key, isOpened: key != nil)
            return StoreLine(
                line: isJSON ? store.json : store.line, warnings: store.left.warnings(of: path), failure: nil)
        } catch {
            return StoreLine(path, isJSON: isJSON, failure: Failure(ofOneStore: error, path))
        }
    }

    func show(_ console: Console) throws(Failure) {
        try console.printResult(line)
        for warning in warnings { warning.show(console) }
        if let failure { console.printFailure(failure) }
    }
}
