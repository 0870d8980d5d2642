internal import CofferSealing

/// Somebody who works on a database with a key that may end while they wait for their turn.
package enum OtherUser {
    /// What is asked when it is their turn to change or copy the store as a whole. Throws where they may not any more.
    @TaskLocal package static var check: (@Sendable () throws(CofferError) -> Void)?
}
