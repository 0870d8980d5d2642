internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import Synchronization

/// Takes the entries that a view's function makes of a document: see ``DatabaseView/Map``. Not for use after its return.
public final class Emitter {
    private(set) var entries: [MappedEntry] = []
    private(set) var failure: CofferError?

    init() {}

    /// Adds a row for the document.
    ///
    /// - Parameters:
    ///   - key: what the row is found and sorted by. Any JSON, of any length.
    ///   - value: what the row says. Any JSON. Default: null.
    public func callAsFunction(_ key: some JSONConvertible, _ value: some JSONConvertible = JSONValue.null) {
        do throws(CofferError) {
            let key = try CollationKey(key.jsonValue)
            let value = value.jsonValue
            entries.append(MappedEntry(key: key.bytes, value: value.isNull ? nil : try value.canonicalJSON()))
        } catch {
            failure = failure ?? error
        }
    }

    /// Adds a row for the document under a key that it may not have: `emit(try revision["city"], 1)`. Without one the key is
    /// null, as CouchDB has it.
    @_disfavoredOverload
    public func callAsFunction(_ key: JSONValue?, _ value: some JSONConvertible = JSONValue.null) {
        self(key ?? .null, value)
    }
}

/// What the app has given a view.
struct ViewFunctions: Sendable {
    let version: String
    let documentType: String?
    let reduction: Reduction?
    let map: DatabaseView.Map

    /// The index that holds what they make.
    func definition(ofView name: String) -> IndexDefinition {
        let parts = [version] + (documentType.map { [$0] } ?? [])
        return IndexDefinition(kind: .view, name: name, definition: parts.jsonValue.description) {
            [map, documentType] revision in
            if let documentType {
                guard case .string(let type)? = try revision["type"], type.utf8.elementsEqual(documentType.utf8) else {
                    return []
                }
            }
            let emitter = Emitter()
            try map(revision, emitter)
            if let failure = emitter.failure { throw failure }
            return emitter.entries
        }
    }
}

/// The functions that the app has given the views of an open database. Safe from any thread.
final class OpenViews: StorageCompanion {
    /// By the UTF-8 of the views' names.
    private let functions = Lock<[[UInt8]: ViewFunctions]>([:])

    func functions(ofView name: String) -> ViewFunctions? { functions.withLock { $0[Array(name.utf8)] } }

    func setFunctions(_ new: ViewFunctions?, ofView name: String) {
        // Let go of outside the lock: what a function holds may end here.
        _ = functions.withLock { functions in
            let key = Array(name.utf8)
            defer { functions[key] = new }
            return functions[key]
        }
    }
}

extension Storage {
    /// The functions of its views.
    var views: OpenViews { companions[OpenViews.self] }
}
