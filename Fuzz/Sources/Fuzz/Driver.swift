/// libFuzzer as a library: compiler-rt's `LLVMFuzzerRunDriver`, of its fuzzer/FuzzerInterface.h.
@_silgen_name("LLVMFuzzerRunDriver")
func runDriver(
    _ argumentCount: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ callback: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// One run. libFuzzer's own `main`, which isn't used but linked, looks for this name.
@_cdecl("LLVMFuzzerTestOneInput")
func LLVMFuzzerTestOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    do {
        try chosen(Array(UnsafeBufferPointer(start: bytes, count: count)))
    } catch {
        fatalError("an error that the harness does not expect: \(error)")
    }
    return 0
}

/// A promise. Unlike `assert` it is kept in every build.
func expect(_ condition: Bool, _ promise: @autoclosure () -> String) {
    guard condition else { fatalError(promise()) }
}

/// Reads numbers off the front of the fuzzer's bytes; zeros once there are none.
struct Choices {
    private var bytes: ArraySlice<UInt8>
    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    var isEmpty: Bool { bytes.isEmpty }
    var rest: [UInt8] { Array(bytes) }

    mutating func byte() -> UInt8 { bytes.popFirst() ?? 0 }
    mutating func number() -> Int { Int(byte()) << 8 | Int(byte()) }
    mutating func number(below limit: Int) -> Int { limit < 1 ? 0 : (number() << 16 | number()) % limit }
    mutating func take(_ count: Int) -> [UInt8] {
        defer { bytes = bytes.dropFirst(count) }
        return Array(bytes.prefix(count))
    }
}

/// SplitMix64.
struct SeededRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
