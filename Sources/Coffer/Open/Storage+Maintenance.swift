internal import CofferRecords
internal import CofferSealing
internal import CofferVault

extension Storage {
    /// Runs `body`, which changes the store as a whole, while nobody else does. Others read and write meanwhile, unless it
    /// keeps them from it with ``alone(_:)``.
    ///
    /// - Throws: what `body` throws; `readOnly` (403); `invalidArgument` (400) inside a transaction, which would wait for
    ///   itself; `busy` (503) when another one takes too long; `closed` (500).
    func maintain<Value>(_ body: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        try checkMayMaintain()
        return try holdingMaintenance(body)
    }

    /// Runs `body`, which looks at the store as a whole, while nobody changes it as a whole. Others read and write meanwhile.
    ///
    /// - Throws: what `body` throws; `invalidArgument` (400) inside a transaction; `busy` (503); `closed` (500).
    func inspect<Value>(_ body: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        try checkUsable()
        guard !writerLock.isHeldByCaller else {
            throw CofferError(.invalidArgument, of: subject, "this can't be done inside a transaction")
        }
        return try holdingMaintenance(body)
    }

    private func holdingMaintenance<Value>(_ body: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        try maintenanceLock.lock(until: .now + settings.busyTimeout, subject: subject)
        defer { maintenanceLock.unlock() }
        if let check = OtherUser.check { try check() }
        return try body()
    }

    /// The same for tasks: waits for its turn, and runs `body` on a thread of its own. Tasks that write don't wait for it.
    func maintainInBackground<Value: Sendable>(
        _ body: @escaping @Sendable () throws(CofferError) -> Value
    ) async throws -> Value {
        let check = OtherUser.check
        return try await maintenanceLine.run { [self] () throws(CofferError) in
            try maintain { () throws(CofferError) in
                if let check { try check() }
                return try body()
            }
        }
    }
}
