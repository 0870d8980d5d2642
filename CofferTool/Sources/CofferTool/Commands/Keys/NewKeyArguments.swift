internal import ArgumentParser
internal import Coffer
internal import CofferKeys

/// Where the new key comes from.
struct NewKeyArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Where the new key comes from, as for --key. Without it you are asked, twice, if there is a terminal.",
            valueName: "source"))
    var newKey: String?

    /// Where the arguments say that it comes from, for the store of that path; nil if somebody is asked.
    func namedSource(of store: String? = nil) throws(Failure) -> KeySource? {
        try newKey.map { (text) throws(Failure) in try KeySource(text, of: "--new-key") }?
            .asked(for: .new, of: store.flatMap { try? StorePath($0) })
    }

    func source() throws(Failure) -> KeySource {
        if let named = try namedSource() { return named }
        guard Terminal.isPresent else {
            throw Failure.usage("there is no new key", hint: "--new-key SOURCE names where it comes from")
        }
        return KeySource(origin: .prompt)
    }

    /// Throws, before anything else happens, when the new key can't be had, or is to be read where another one is.
    func checkStandardInput(_ arguments: StoreArguments, others: [KeySource] = []) throws(Failure) {
        try checkStandardInput([arguments.keySource()].compactMap(\.self) + others)
    }

    /// The same, beside those keys.
    func checkStandardInput(_ others: [KeySource]) throws(Failure) {
        let sources = try [source()] + others
        guard sources.count(where: \.usesStandardInput) < 2 else {
            throw Failure.usage("standard input cannot be two keys")
        }
    }

    func key(of path: StorePath, _ console: Console) throws(Failure) -> SymmetricKey {
        try source().asked(for: .new, of: path).newKey(for: "New key of \(Console.printable(path.fileName))", console)
    }

    var usesStandardInput: Bool {
        get throws(Failure) { try source().usesStandardInput }
    }
}

/// What a key is called.
struct LabelArguments: ParsableArguments {
    @Option(help: "The key's label: up to 200 bytes, kept encrypted in the store.")
    var label: String?
}
