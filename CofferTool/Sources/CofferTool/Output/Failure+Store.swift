internal import Coffer

/// What is wrong with one store of many.
extension Failure {
    init(ofOneStore error: any Error, _ path: String) {
        let failure =
            switch error {
            case let failure as Failure: failure
            case let error as CofferError: Failure(error, of: path)
            default: Failure(describing: error, subject: path)
            }
        self = failure.about(Console.printable(path))
    }

    /// The store's line among the results.
    func storeLine(_ path: String) -> String {
        var line = JSONLine(type: "store")
        line.add("path", path)
        add(to: &line)
        return line.finished
    }
}
