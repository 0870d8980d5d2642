extension Failure {
    /// A store without encryption, where keys are needed.
    static let notEncrypted = Failure(
        message: "it is not encrypted", hint: "coffer encrypt encrypts it", code: "notEncrypted", status: 401,
        exit: .wrongKey)
}
