import CofferSealing
import Foundation
import Testing

@testable import CofferVault

@Suite("Work beside other work")
struct SideWorkTests {
    @Test("Side work that another thread has begun is over when the call returns, also when the other work throws")
    func awaited() throws {
        for fails in [false, true] {
            let begun = DispatchSemaphore(value: 0)
            let isOver = Shared(false)
            let result = Result { () throws(CofferError) in
                try SideWork.run {
                    begun.signal()
                    usleep(50_000)
                    isOver.change { $0 = true }
                } beside: { () throws(CofferError) in
                    begun.wait()
                    if fails { throw CofferError(.noSpace) }
                }
            }
            #expect(isOver.value)
            #expect(fails == ((try? result.get()) == nil))
        }
    }

    @Test("Side work is done once, by the thread that asks for it where no other one is free")
    func without() {
        // More than the system gives threads: those that wait here keep all of them.
        let count = 600
        let done = Shared(0)
        let group = DispatchGroup()
        for _ in 0..<count {
            DispatchQueue.global().async(group: group) {
                SideWork.run {
                    done.change { $0 += 1 }
                } beside: {
                    _ = usleep(1_000)
                }
            }
        }
        #expect(group.wait(timeout: .now() + 120) == .success)
        #expect(done.value == count)
    }

    private final class Shared<Value: Sendable>: Sendable {
        private let content: Lock<Value>
        init(_ value: Value) { content = Lock(value) }
        var value: Value { content.withLock { $0 } }
        func change(_ body: (inout sending Value) -> Void) { content.withLock { body(&$0) } }
    }
}
