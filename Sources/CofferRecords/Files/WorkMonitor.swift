package import CofferSealing

/// Long work, seen from whoever does it: whether it is still wanted, and whom to tell how far it is.
package struct WorkMonitor: Sendable {
    private let isWanted: @Sendable () -> Bool
    private let report: @Sendable (_ byteCount: Int) -> Void

    package init(
        goesOn isWanted: @escaping @Sendable () -> Bool = { true },
        advance report: @escaping @Sendable (_ byteCount: Int) -> Void = { _ in }
    ) {
        self.isWanted = isWanted
        self.report = report
    }

    package var goesOn: Bool { isWanted() }

    /// - Throws: `cancelled` (499).
    package func checkCancelled() throws(CofferError) {
        if !goesOn { throw CofferError(.cancelled) }
    }

    /// Notes that so many more bytes are done.
    package func advance(byteCount: Int) { report(byteCount) }
}
