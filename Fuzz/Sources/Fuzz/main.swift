import Foundation

// Fuzz HARNESS [libFuzzer's arguments]: runs one of the harnesses. `scripts/fuzz` builds and calls it.

/// The harnesses by name. Each takes bytes that may be anything and ends the process where a promise is broken.
let harnesses: [String: @Sendable ([UInt8]) throws -> Void] = [
    "attachment": AttachmentHarness.run, "json": JSONHarness.run, "manifest": ManifestHarness.run,
    "records": RecordsHarness.run, "rows": RowsHarness.run, "salvage": SalvageHarness.run,
    "sealed": SealedHarness.run, "store": StoreHarness.run,
]

let arguments = CommandLine.arguments
guard arguments.count > 1, let harness = harnesses[arguments[1]] else {
    print("usage: Fuzz \(harnesses.keys.sorted().joined(separator: "|")) [ARGUMENT]…")
    exit(64)
}
let chosen = harness

// libFuzzer reads the arguments itself, without the harness's name.
var argumentCount = CInt(arguments.count - 1)
var argumentPointers = CommandLine.unsafeArgv
argumentPointers[1] = argumentPointers[0]
argumentPointers += 1
exit(runDriver(&argumentCount, &argumentPointers) { LLVMFuzzerTestOneInput($0, $1) })
