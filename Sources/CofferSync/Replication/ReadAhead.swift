internal import CofferSealing
internal import Synchronization

/// Makes what comes next while the last is being used: one value ahead or several, in tasks of their own.
///
/// For one task that asks. Values come in order; an error comes where the value would have, after those before it. After nil and
/// after an error nothing more is made.
actor ReadAhead<Element: Sendable> {
    /// What is left to do for a value once it is its turn: values wait for it, and for nothing else, at the same time.
    typealias Rest = @Sendable () async throws -> Element

    private struct Making {
        let beginning: Task<Rest?, any Error>
        let value: Task<Element?, any Error>
    }

    private let begin: @Sendable () async throws -> Rest?
    private let count: @Sendable () -> Int
    /// The first one next.
    private var makings: [Making] = []
    private var isOver = false

    /// - Parameters:
    ///   - count: so many are made ahead, looked at whenever one was taken.
    ///   - begin: begins the next value, nil after the last. It is called for one at a time.
    init(upTo count: @escaping @Sendable () -> Int, beginning begin: @escaping @Sendable () async throws -> Rest?) {
        self.count = count
        self.begin = begin
    }

    /// - Parameter make: the next value, nil after the last. It is called for one at a time.
    init(_ make: @escaping @Sendable () async throws -> Element?) {
        self.init(upTo: { 1 }) {
            guard let value = try await make() else { return nil }
            return { value }
        }
    }

    /// The next value, nil after the last. Cancelling the waiting task cancels the work that makes it.
    func next() async throws -> Element? {
        guard !isOver else { return nil }
        fill()
        do {
            guard let value = try await makings[0].value.ownValue else {
                isOver = true
                return nil
            }
            if !isOver {
                makings.removeFirst()
                fill()
            }
            return value
        } catch {
            isOver = true
            throw error
        }
    }

    private func fill() {
        while makings.count < max(1, count()) {
            let beginning = Task { [begin, last = makings.last?.beginning] in
                // After the last there is nothing.
                if let last, try await last.value == nil { return Rest?.none }
                return try await begin()
            }
            let value = Task { try await beginning.ownValue?() }
            makings.append(Making(beginning: beginning, value: value))
        }
    }

    /// Cancels what is being made, and waits until it has let go of everything.
    func end() async {
        isOver = true
        for making in makings {
            making.beginning.cancel()
            making.value.cancel()
        }
        for making in makings { _ = await making.value.result }
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

/// How many requests of a kind are on their way at a time.
///
/// A server that is far away gets more, so that the way there and back is waited for less often. One that takes long for each
/// gets no more than two: it would answer the last of many after everybody has given up.
final class RequestWindow: Sendable {
    /// So many however long the server takes: it reads one while it works on the other.
    static let least = 2

    private let state = Lock(least)
    private let limit: Int
    private let patience: Duration

    /// - Parameters:
    ///   - limit: so many at most.
    ///   - patience: a server that sends nothing for that time doesn't answer.
    init(limit: Int = 8, patience: Duration) {
        self.limit = limit
        self.patience = patience
    }

    var count: Int { state.withLock { $0 } }

    /// Does `work`, and notes how long it took.
    func measure<Value>(_ work: () async throws -> Value) async throws -> Value {
        let start = ContinuousClock.now
        let value = try await work()
        note(.now - start)
        return value
    }

    /// Notes that a request was answered after that time: a tenth of what is borne leaves room for all others before it.
    func note(_ duration: Duration) {
        state.withLock { count in
            count = duration < patience / 10 ? min(count + 1, limit) : Self.least
        }
    }
}
