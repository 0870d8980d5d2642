/// What happens at one numbered step, from 1. Each step is one changing call.
package enum Fault: Sendable, Codable, Equatable {
    case killBefore(Int)
    /// A write is torn: half of it arrives. Any other step is killed after its effect.
    case killWithin(Int)
    case killAfter(Int)
    /// The step has no effect and fails.
    case fail(Int, Int32)
    /// The step has its effect and yet reports a failure.
    case failAfter(Int, Int32)
    /// Neither this step nor any later one has an effect: a kill as seen from the disk, without a process of its own.
    case stopBefore(Int)
    /// From this step on whatever takes space fails.
    case fullFrom(Int)
}
