/// Random numbers that are the same for the same seed, on every system, so that a failure can be had again.
///
/// SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014), section 4.
package struct SeededNumbers: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// The numbers for one purpose: the same for the same seed and parts.
    package init(seed: UInt64, _ parts: Int...) {
        var mixed = SeededNumbers(seed: seed)
        for part in parts { mixed = SeededNumbers(seed: mixed.next() ^ UInt64(part)) }
        self = mixed
    }

    /// A number from 0 up to `limit`, without it.
    package mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }

    /// True with a probability of one in `count`.
    package mutating func isOne(in count: Int) -> Bool { below(count) == 0 }

    /// A random element; nil for an empty array.
    package mutating func pick<Value>(_ values: [Value]) -> Value? {
        values.isEmpty ? nil : values[below(values.count)]
    }
}
