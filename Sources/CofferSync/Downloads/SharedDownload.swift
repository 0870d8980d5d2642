internal import CofferSealing
internal import Synchronization
internal import Foundation
internal import Coffer

/// A server's database that contents are fetched from, with what all downloads of a replication share.
final class DownloadSource: Sendable {
    let remote: RemoteDatabase
    let semaphore: AsyncSemaphore

    init(_ remote: RemoteDatabase) {
        self.remote = remote
        semaphore = AsyncSemaphore(count: remote.options.parallelDownloadCount)
    }
}

/// One content on its way into a database, for everybody in this process who has asked for it.
///
/// What has come is in the database's store, encrypted, and stays there through pauses, and while the server is away, as
/// long as that says how to go on: with an ETag, and taking ranges.
final class SharedDownload: Sendable {
    private struct Key: Hashable {
        let database: ObjectIdentifier
        let digest: [UInt8]
    }

    /// Those that are under way. Taken before any of their own locks.
    private static let underWay = Lock<[Key: SharedDownload]>([:])

    /// The server that is asked for the content, and the name that it is asked by.
    struct Place: Sendable, Hashable {
        let source: DownloadSource
        let location: ContentLocation

        static func == (left: Place, right: Place) -> Bool {
            left.source === right.source && left.location == right.location
        }

        func hash(into hasher: inout Hasher) { hasher.combine(location) }
    }

    /// What has come of the content.
    struct Part: Sendable {
        let content: ArrivingContent
        let place: Place
        /// The strong ETag by which the server goes on; nil if it doesn't.
        let tag: String?
    }

    private struct Request {
        let number: Int
        let latest: LatestValue<DownloadStatus>
        var isPaused = false
    }

    private struct State {
        var sources: [DownloadSource] = []
        var requests: [Request] = []
        var lastNumber = 0
        var task: Task<Void, Never>?
        var isRunning = false
        var isOver = false
        /// What the status says of all requests that aren't paused, those too that come later.
        var activity = DownloadStatus.Activity.waiting
        var error: (any Error)?
        var part: Part?
        var byteCount = 0

        /// Tells all who ask, but for those who paused it, of what they see only the bytes.
        func tell(_ change: (inout DownloadStatus) -> Void) {
            for request in requests {
                request.latest.change { status in
                    change(&status)
                    if request.isPaused { status.activity = .paused }
                }
            }
        }

        mutating func dropPart() {
            part?.content.cancel()
            part = nil
            byteCount = 0
            tell { $0.completedByteCount = 0 }
        }
    }

    let database: Database
    let digest: String
    let length: Int
    private let state = Lock(State())

    private init(_ digest: String, _ length: Int, in database: Database) {
        self.digest = digest
        self.length = length
        self.database = database
    }

    private var key: Key { Key(database: ObjectIdentifier(database), digest: Array(digest.utf8)) }

    // MARK: Requests

    /// A request for a content, which begins its download unless that is under way.
    static func request(
        _ digest: String, _ length: Int, in database: Database, from source: DownloadSource
    ) -> AttachmentDownload {
        let new = SharedDownload(digest, length, in: database)
        return underWay.withLock { all in
            let download = all[new.key] ?? new
            all[new.key] = download
            return download.join(source)
        }
    }

    private func join(_ source: DownloadSource) -> AttachmentDownload {
        state.withLock { state in
            if !state.sources.contains(where: { $0 === source }) { state.sources.append(source) }
            begin(&state)
            let latest = LatestValue(
                DownloadStatus(
                    activity: state.activity, completedByteCount: told(state.byteCount), totalByteCount: length,
                    error: state.error))
            state.lastNumber += 1
            state.requests.append(Request(number: state.lastNumber, latest: latest))
            return AttachmentDownload(state.lastNumber, of: self, latest)
        }
    }

    func pause(_ number: Int) {
        state.withLock { state in
            guard let index = state.requests.firstIndex(where: { $0.number == number }) else { return }
            state.requests[index].isPaused = true
            state.requests[index].latest.change { $0.activity = .paused }
            guard state.isRunning, state.requests.allSatisfy(\.isPaused) else { return }
            state.isRunning = false
            state.task?.cancel()
            if state.part?.tag == nil { state.dropPart() }
        }
    }

    func resume(_ number: Int) {
        state.withLock { state in
            guard let index = state.requests.firstIndex(where: { $0.number == number }),
                state.requests[index].isPaused
            else { return }
            state.requests[index].isPaused = false
            begin(&state)
            state.requests[index].latest.change { status in
                status.activity = state.activity
                status.error = state.error
            }
        }
    }

    func cancel(_ number: Int) { cancel(number, ifPaused: false) }

    /// Cancels a request that is paused: nobody is left who could have it go on.
    func letGo(_ number: Int) { cancel(number, ifPaused: true) }

    private func cancel(_ number: Int, ifPaused: Bool) {
        Self.underWay.withLock { all in
            state.withLock { state in
                guard let index = state.requests.firstIndex(where: { $0.number == number }),
                    state.requests[index].isPaused || !ifPaused
                else { return }
                Self.finish(state.requests.remove(at: index), CancellationError())
                if state.requests.isEmpty {
                    end(&state, &all)
                } else if state.isRunning, state.requests.allSatisfy(\.isPaused) {
                    state.isRunning = false
                    state.task?.cancel()
                }
            }
        }
    }

    private static func finish(_ request: Request, _ error: (any Error)?) {
        request.latest.change { status in
            status.activity = error == nil ? .finished : .failed
            status.error = error
            status.completedByteCount = error == nil ? status.totalByteCount : 0
        }
        request.latest.finish()
    }

    // MARK: Running

    private func begin(_ state: inout State) {
        guard !state.isRunning, !state.isOver else { return }
        state.isRunning = true
        (state.activity, state.error) = (.waiting, nil)
        // One that was told to stop may still be about to.
        let last = state.task
        state.task = Task {
            await last?.value
            await self.go()
        }
    }

    var isOver: Bool { state.withLock(\.isOver) }

    private func go() async {
        guard !isOver else { return }
        do {
            try await ContentFetch(self).run()
            end(nil)
        } catch {
            // The caller that stopped it has seen to the rest.
            if !Task.isCancelled { end(error) }
        }
    }

    private func end(_ error: (any Error)?) {
        Self.underWay.withLock { all in
            state.withLock { state in
                for request in state.requests { Self.finish(request, error) }
                end(&state, &all)
            }
        }
    }

    private func end(_ state: inout State, _ all: inout [Key: SharedDownload]) {
        guard !state.isOver else { return }
        state.isOver = true
        state.isRunning = false
        state.requests = []
        state.task?.cancel()
        state.dropPart()
        if all[key] === self { all[key] = nil }
    }

    // MARK: For the task that fetches

    var sources: [DownloadSource] { state.withLock(\.sources) }

    /// What has come that goes on; other than that is dropped.
    func usablePart() -> Part? {
        state.withLock { state in
            if state.part != nil, state.part?.tag == nil { state.dropPart() }
            return state.part
        }
    }

    /// Begins again, with this; nil gives up what came.
    ///
    /// - Throws: `CancellationError` when nobody wants it any more.
    func begin(with part: Part?) throws {
        try state.withLock { state in
            guard !state.isOver, !Task.isCancelled else {
                part?.content.cancel()
                throw CancellationError()
            }
            state.dropPart()
            state.part = part
        }
    }

    /// Notes that the part is whole, and somebody else's.
    func takePart() { state.withLock { $0.part = nil } }

    func note(_ activity: DownloadStatus.Activity, _ error: (any Error)? = nil) {
        state.withLock { state in
            (state.activity, state.error) = (activity, error)
            state.tell { status in
                status.activity = activity
                status.error = error
            }
        }
    }

    func note(byteCount: Int) {
        state.withLock { state in
            state.byteCount = byteCount
            state.tell { $0.completedByteCount = self.told(byteCount) }
        }
    }

    /// All of it is here only when it was checked and installed.
    private func told(_ byteCount: Int) -> Int { min(byteCount, max(0, length - 1)) }
}

/// Lets so many tasks through at the same time, in the order in which they come.
final class AsyncSemaphore: Sendable {
    private struct State {
        var freeCount: Int
        var lastNumber = 0
        var waiting: [(number: Int, continuation: CheckedContinuation<Bool, Never>)] = []
    }

    private let state: Lock<State>

    init(count: Int) { state = Lock(State(freeCount: max(1, count))) }

    /// Runs `body` when it is its turn.
    ///
    /// - Throws: `CancellationError` where the task is cancelled before that; what `body` throws.
    func pass<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        try await enter()
        defer { leave() }
        return try await body()
    }

    private func enter() async throws {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let isInside = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    if Task.isCancelled { return false }
                    guard state.freeCount > 0 else {
                        state.waiting.append((number, continuation))
                        return nil
                    }
                    state.freeCount -= 1
                    return true
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let left = state.withLock { state in
                state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0).continuation }
            }
            left?.resume(returning: false)
        }
        guard isInside else { throw CancellationError() }
    }

    private func leave() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard !state.waiting.isEmpty else {
                state.freeCount += 1
                return nil
            }
            return state.waiting.removeFirst().continuation
        }
        next?.resume(returning: true)
    }
}
