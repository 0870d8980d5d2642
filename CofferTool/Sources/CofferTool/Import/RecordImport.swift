internal import Coffer
internal import Foundation

/// Saves every record of some files, in the transaction of the caller.
struct RecordImport {
    let database: Database
    let id: RecordID

    /// Returns how many documents were saved.
    func run(_ files: ImportFiles, _ progress: inout ProgressLine) throws -> Int {
        var documentCount = 0
        var earlierByteCount = 0
        for file in files.files {
            let contents = try InputFile.contents(of: file.path)
            do {
                let bytes = contents.span
                var scanner = try RecordScanner(bytes, idField: id.field)
                while let record = try scanner.next(bytes) {
                    try Interruption.check()
                    let id = try self.id.value(of: record, bytes)
                    let body = try self.id.body(of: record, bytes).reduce(into: Data()) { $0 += contents[$1] }
                    try save(body, id, line: record.line)
                    documentCount += 1
                    progress.update(
                        earlierByteCount + record.range.upperBound, of: files.byteCount, "\(documentCount) documents")
                }
            } catch let obstacle as JSONCursor.Obstacle {
                throw Failure.invalidInput(obstacle.message, in: file.path, line: obstacle.line)
            } catch let refusal as Refusal {
                throw Failure(refusal.error, in: file.path, line: refusal.line)
            }
            earlierByteCount += contents.count
        }
        return documentCount
    }

    /// What the library says of a record on that line.
    private struct Refusal: Error {
        let line: Int
        let error: CofferError
    }

    private func save(_ body: Data, _ id: String?, line: Int) throws(Refusal) {
        do {
            _ = try database.save(json: body, withID: id)
        } catch {
            throw Refusal(line: line, error: error)
        }
    }
}

extension Failure {
    /// An error of the library about what stands on a line of a file.
    fileprivate init(_ error: CofferError, in file: String, line: Int) {
        let failure = Failure(error)
        self.init(
            message: "\(file):\(line): \(failure.message)", hint: failure.hint, code: failure.code,
            status: failure.status, exit: failure.exit, place: Place(file: file, line: line))
    }
}
