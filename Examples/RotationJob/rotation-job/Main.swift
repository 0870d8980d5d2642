import Coffer
import Foundation
import RotationJob

/// `rotation-job FOLDER OLD-KEY-FILE NEW-KEY-FILE`: each file holds the 32 bytes of a key.
///
/// Ends with 0 when the new key opens every database of the folder, with 1 when one was left, and with 64 for other arguments.
@main
struct Main {
    static func main() throws {
        let arguments = CommandLine.arguments.dropFirst().map { URL(filePath: $0) }
        guard arguments.count == 3 else {
            FileHandle.standardError.write(Data("usage: rotation-job FOLDER OLD-KEY-FILE NEW-KEY-FILE\n".utf8))
            exit(64)
        }
        let job = RotationJob(
            manager: try Manager(directory: arguments[0]), oldKey: try key(in: arguments[1]),
            newKey: try key(in: arguments[2]))
        let isDone = try job.run { name, outcome in print("\(name): \(outcome)") }
        exit(isDone ? 0 : 1)
    }

    private static func key(in file: URL) throws -> SymmetricKey {
        try SymmetricKey(data: Data(contentsOf: file))
    }
}
