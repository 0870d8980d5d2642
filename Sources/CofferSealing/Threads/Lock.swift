#if COFFER_THREAD_SANITIZER
#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A value that one thread at a time may use, as the thread sanitizer sees it.
///
/// It knows pthread's locks. `Mutex` lives in a library that it does not watch, and all that one protects would be
/// reported as a race. Only `scripts/test` builds with this flag (test: "Threads that take turns with a digest, a cipher and a secret get what one thread would").
package struct Lock<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    @safe private final class Memory {
        let mutex: UnsafeMutablePointer<pthread_mutex_t>
        let value: UnsafeMutablePointer<Value>

        init(_ initialValue: consuming Value) {
            unsafe mutex = .allocate(capacity: 1)
            unsafe mutex.initialize(to: pthread_mutex_t())
            unsafe pthread_mutex_init(mutex, nil)
            unsafe value = .allocate(capacity: 1)
            unsafe value.initialize(to: initialValue)
        }

        deinit {
            unsafe pthread_mutex_destroy(mutex)
            unsafe mutex.deallocate()
            unsafe value.deinitialize(count: 1)
            unsafe value.deallocate()
        }
    }

    private let memory: Memory

    package init(_ initialValue: consuming sending Value) { memory = Memory(initialValue) }

    /// Runs `body` while no other thread is in another `body`.
    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        unsafe pthread_mutex_lock(memory.mutex)
        defer { unsafe pthread_mutex_unlock(memory.mutex) }
        return unsafe try body(&memory.value.pointee)
    }
}
#else
package import Synchronization

/// A value that one thread at a time may use: `Mutex` itself, except where the thread sanitizer watches.
package typealias Lock<Value: ~Copyable> = Mutex<Value>
#endif
