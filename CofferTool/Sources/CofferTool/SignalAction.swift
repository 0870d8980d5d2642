#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// What a process does when a signal comes: `sigaction(2)`.
struct SignalAction {
    private var action: sigaction

    /// - Parameter handler: runs in the middle of whatever the process does, and so does nothing but what is safe there.
    init(_ handler: @escaping @convention(c) (Int32) -> Void) {
        action = sigaction()
        #if canImport(Glibc)
        unsafe action.__sigaction_handler.sa_handler = handler
        #else
        unsafe action.__sigaction_u.__sa_handler = handler
        #endif
    }

    private init(_ action: sigaction) { self.action = action }

    /// What it does now.
    static func current(_ signal: Int32) -> SignalAction {
        var action = sigaction()
        unsafe sigaction(signal, nil, &action)
        return SignalAction(action)
    }

    /// Whether the signal is ignored.
    var isIgnoring: Bool {
        #if canImport(Glibc)
        let handler = unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
        #else
        let handler = unsafe unsafeBitCast(action.__sigaction_u.__sa_handler, to: Int.self)
        #endif
        return unsafe handler == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Has the process do this from here on, and returns what it did before.
    @discardableResult
    func install(for signal: Int32) -> SignalAction {
        var (new, old) = (action, sigaction())
        unsafe sigaction(signal, &new, &old)
        return SignalAction(old)
    }
}
