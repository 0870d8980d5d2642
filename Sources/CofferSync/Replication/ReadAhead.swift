/// Makes what comes next while the last is being used: one value ahead, in a task of its own.
///
/// For one task that asks. Values come in order; an error comes where the value would have, after those before it. After nil and
/// after an error nothing more is made.
actor ReadAhead<Element: Sendable> {
    private let make: @Sendable () async throws -> Element?
    private var task: Task<Element?, any Error>?
    private var isOver = false

    /// - Parameter make: the next value, nil after the last. It is called for one at a time.
    init(_ make: @escaping @Sendable () async throws -> Element?) { self.make = make }

    /// The next value, nil after the last. Cancelling the waiting task cancels the work that makes it.
    func next() async throws -> Element? {
        guard !isOver else { return nil }
        let making = task ?? begin()
        do {
            let value = try await making.ownValue
            if value == nil { isOver = true } else if !isOver { _ = begin() }
            return value
        } catch {
            isOver = true
            throw error
        }
    }

    private func begin() -> Task<Element?, any Error> {
        let task = Task { [make] in try await make() }
        self.task = task
        return task
    }

    /// Cancels what is being made, and waits until it has let go of everything.
    func end() async {
        isOver = true
        task?.cancel()
        _ = await task?.result
    }
}

extension Task where Failure == any Error {
    /// The task's value, for the one caller that waits for it: cancelling that caller cancels it, too.
    var ownValue: Success {
        get async throws {
            try await withTaskCancellationHandler {
                try await value
            } onCancel: {
                cancel()
            }
        }
    }
}
