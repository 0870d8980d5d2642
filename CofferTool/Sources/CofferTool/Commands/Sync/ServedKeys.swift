#if Sync
internal import Coffer
@_spi(Tool) internal import CofferKeys
internal import Foundation

/// The keys that `coffer serve` opens stores with: one for all, or what a command says of each.
struct ServedKeys: Sendable {
    private enum Origin {
        case none
        case same(SymmetricKey)
        case command(KeySource)
    }

    private let origin: Origin
    private let folder: String
    private let isJSON: Bool

    /// Whether stores are served without a key.
    var areNone: Bool { if case .none = origin { true } else { false } }

    /// Reads the key, unless a command is asked for each store later.
    init(
        _ source: KeySource?, ofStoresIn folder: String, isForEachStore: Bool, isJSON: Bool
    ) throws(Failure) {
        (self.folder, self.isJSON) = (folder, isJSON)
        guard let source else {
            origin = .none
            return
        }
        origin = isForEachStore ? .command(source) : .same(try source.key(for: "Key of the stores"))
    }

    /// The key of a store of the folder, or of one that is to be made there. What a command fails with is noted on standard
    /// error, since clients are not told.
    func key(ofStoreNamed name: String) async throws -> SymmetricKey? {
        switch origin {
        case .none: return nil
        case .same(let key): return key
        case .command(let source):
            let path = try StorePath("\(folder)/\(name.replacing("/", with: ":")).coffer")
            return try await Self.onThread {
                do {
                    // One that is being made has none yet.
                    let uuid = path.uuid
                    let request = KeyRequest(uuid == nil ? .new : .old, storePath: path.path, storeUUID: uuid)
                    return try source.asked(for: request).reading(for: "key").key
                } catch {
                    Console(isJSON: isJSON).printNote(
                        "the key of \(Console.printable(name)) can't be had: \((error as? Failure)?.message ?? "it failed")"
                    )
                    throw error
                }
            }
        }
    }

    /// Does what waits for another process, apart from the threads that tasks share.
    private static func onThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
        }
    }
}
#endif
