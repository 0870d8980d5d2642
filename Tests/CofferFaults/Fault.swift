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
    /// The same for the first step of this name, whatever its number: for steps of several threads.
    case failFirst(String, Int32)
    /// Each step of this name has no effect and fails: as the removal of an immutable file does.
    case failEach(String, Int32)
    /// Neither this step nor any later one has an effect: a kill as seen from the disk, without a process of its own.
    case stopBefore(Int)
    /// From this step on whatever takes space fails.
    case fullFrom(Int)
}

extension Fault {
    /// Where a process is killed so that every step of `steps` is met: before each, within each write, since a torn write is
    /// a point of its own, and after those of `after`, by default the last. Everything else between two steps leaves the same on the disk.
    package static func kills(in steps: [String], after: Set<Int>? = nil) -> [(fault: Fault, step: String)] {
        zip(1..., steps).flatMap { number, step in
            var faults = [Fault.killBefore(number)]
            if step.hasPrefix("write ") { faults.append(.killWithin(number)) }
            if (after ?? [steps.count]).contains(number) { faults.append(.killAfter(number)) }
            return faults.map { ($0, step) }
        }
    }
}
