internal import Coffer

extension Database {
    /// Throws where there are no keys, before one is asked for.
    func checkIsEncrypted(_ store: String) throws(Failure) {
        guard !isEncrypted else { return }
        throw Failure.notEncrypted.about(store)
    }

    /// Throws unless there is a key with that id: a failure, and no mistake in the command line.
    func checkHasKey(_ id: String) throws {
        guard try keys.contains(where: { $0.id == id }) else {
            throw Failure(
                message: "key \(id): there is none with this id", hint: "coffer key list shows the ids",
                code: "invalidArgument", status: 400, exit: .failed)
        }
    }
}

extension Failure {
    /// A store without encryption, where keys are needed.
    static let notEncrypted = Failure(
        message: "it is not encrypted", hint: "coffer encrypt encrypts it", code: "notEncrypted", status: 401,
        exit: .wrongKey)
}
