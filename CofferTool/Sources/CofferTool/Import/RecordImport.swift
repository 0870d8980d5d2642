internal import Coffer
internal import Foundation

/// Saves every record of some files, in the transaction of the caller.
struct RecordImport {
    let database: Database
    let id: RecordID
    /// Where the contents are that records name; nil if they must be in the database.
    let contents: ContentFolder?

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
                let failure = refusal.failure
                throw failure.exit == .cancelled ? failure : failure.in(file.path, line: refusal.line)
            }
            earlierByteCount += contents.count
        }
        return documentCount
    }

    private func save(_ body: Data, _ id: String?, line: Int) throws {
        do {
            _ = try database.save(json: body, withID: id) { (reference) throws(Failure) in
                try contents?.content(reference)
            }
        } catch let error as CofferError {
            var failure = Failure(error)
            if error.code == .attachmentNotFound {
                failure.hint = "--attachments FOLDER names where export --attachments has put the contents"
            }
            throw Refusal(line: line, failure: failure)
        } catch let failure as Failure {
            throw Refusal(line: line, failure: failure)
        }
    }

    /// Why a record on that line was not saved.
    private struct Refusal: Error {
        let line: Int
        let failure: Failure
    }
}
