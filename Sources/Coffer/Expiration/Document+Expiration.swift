internal import CofferModel
internal import CofferRecords
public import CofferSealing
public import Foundation

extension Document {
    // MARK: Expiration

    /// When the document will be purged automatically; nil for never.
    ///
    /// - Throws: `invalidDocumentID` (400), `damaged` and `closed` (500).
    public var expirationDate: Date? {
        get throws(CofferError) {
            let id = try checkedID
            let time = try database.storage.readBriefly { (tables) throws(CofferError) in
                try tables.expirations.time(of: id)
            }
            return time.map { Date(timeIntervalSince1970: Double($0) / 1_000) }
        }
    }

    /// Has the document purged at a time, or never.
    ///
    /// Purged is more than deleted: all its revisions and their attachments are gone as if they had never been there, and no
    /// peer learns of it. That happens within a second of the time while the database is open for writing, and otherwise
    /// when it is opened for writing next; until then, and as long as it is open for reading only, the document can be read.
    /// The time holds for whatever revisions the document has by then, and does not travel to other copies of the database.
    ///
    /// - Parameter date: when, with a precision of a millisecond; one that has passed means at once. Nil: never.
    /// - Throws: `invalidDocumentID` and, for a date that is not a number, `invalidArgument` (400); `readOnly` (403),
    ///   `documentNotFound` (404) when nothing was ever saved under this id, `closed` (500), `busy` (503), `noSpace` (507).
    public func setExpirationDate(_ date: Date?) throws(CofferError) {
        let id = try checkedID
        let time = try date.map { (date) throws(CofferError) in
            guard let time = ExpirationTimer.time(of: date) else {
                throw CofferError(.invalidArgument, of: subject, "the date is not a number")
            }
            return time
        }
        try database.storage.write { (writer) throws(CofferError) in
            guard try writer.tables.document(id) != nil else { throw CofferError(.documentNotFound, of: subject) }
            try writer.change { () throws(CofferError) in try writer.tables.expirations.set(id, time) }
            writer.state.hasChangedExpirations = true
        }
    }
}
