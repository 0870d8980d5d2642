import Coffer
import Foundation

/// Somebody's notes, in a store that one key opens.
public final class Notes: Sendable {
    private let database: Database

    /// Opens the notes of `manager`, or begins new ones.
    public init(manager: Manager = .shared, key: SymmetricKey) throws(CofferError) {
        database = try manager.database(named: "notes", encryptionKey: key)
        try database.createTextIndex(named: "texts", on: ["text"])
    }

    /// Keeps a note under its title, with a picture if there is one.
    public func write(_ text: String, under title: String, picture: Data? = nil) throws(CofferError) {
        let draft = try database.document(withID: title).newRevision()
        draft["text"] = .string(text)
        if let picture {
            draft.setAttachment(named: "picture", contentType: "image/png", content: picture)
        }
        try draft.save()
    }

    /// The text under a title, if there is one.
    public func text(under title: String) throws(CofferError) -> String? { try database[title]?["text"] }

    /// The titles of all notes, in order.
    public var titles: [String] {
        get throws(CofferError) { try database.documentIDs() }
    }

    /// The notes that have the words somebody looks for, the best first, and a piece of each around these.
    public func search(_ text: String) throws(CofferError) -> [(title: String, excerpt: String)] {
        try database.search("texts", for: SearchQuery(text)).all.map { (hit) throws(CofferError) in
            (hit.documentID, try hit.snippet(of: "text") { "*\($0)*" } ?? "")
        }
    }

    /// Puts everything under another key. The old one opens nothing any more.
    public func changeKey(to key: SymmetricKey) throws(CofferError) {
        try database.changeEncryptionKey(to: key)
    }

    /// Ends the work with the notes.
    public func close() throws(CofferError) { try database.close() }
}
