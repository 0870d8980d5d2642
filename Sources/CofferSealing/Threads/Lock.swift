#if canImport(Glibc)
package import Glibc
#else
package import Darwin
#endif

/// A value that one thread at a time may use.
///
/// A `pthread_mutex_t`, and not the standard library's `Mutex`: on Linux that hands the lock to whoever waits longest, so
/// that once eight threads meet on two processors every call switches threads, and reading takes ten times as long for as
/// long as they all are at it. The thread sanitizer knows this one, too, which is the one that ships.
@safe package struct Lock<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    // Sendable: nobody else has the pointers, and only who holds the mutex follows the second
    // (test: "Threads that take turns with a digest, a cipher and a secret get what one thread would").
    @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
    @usableFromInline let value: UnsafeMutablePointer<Value>

    package init(_ initialValue: consuming sending Value) {
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

    /// Runs `body` while no other thread is in another `body`.
    @inlinable package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return unsafe try body(&value.pointee)
    }
}
