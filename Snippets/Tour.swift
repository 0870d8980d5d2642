// The tour of README.
// snippet.tour
import Coffer
import Foundation

struct Note: Codable { var title: String; var stars: Int; var written: Date }

let folder = URL.temporaryDirectory.appending(path: "coffer-tour-\(UUID())")
let manager = try Manager(directory: folder)
let key = try SymmetricKey()                                            // 32 random bytes
let notes = try manager.database(named: "notes", encryptionKey: key)    // opens it, or creates it

try notes.inTransaction {                                               // all or nothing
    for number in 1...1_000 {
        let note = Note(title: "Note \(number)", stars: number % 6, written: .now)
        try notes.save(note, withID: "note-\(number)")
    }
}
try notes.update("note-7", as: Note.self) { $0.stars += 1 }
print(try notes.document(withID: "note-7").decode(Note.self).stars)     // 2

try notes.createIndex(named: "by stars", on: "stars")
print(try notes.documents(DocumentQuery(where: Property("stars") == 5)).count)      // 166

let draft = try notes.document(withID: "note-7").newRevision()
draft.setAttachment(named: "scan", contentType: "text/plain", content: Data("by the sea".utf8))
try draft.save()
let scan = try notes["note-7"]?.currentRevision?.attachment(named: "scan")
print(try scan?.content?.count ?? 0)                                    // 10

for change in try notes.changes(since: 1_000).all { print(change.documentID) }      // note-7

try notes.addKey(SymmetricKey(password: "for emergencies"), label: "recovery")      // a second key for the same data
let change = try notes.changeEncryptionKey(to: SymmetricKey(password: "a new one"), droppingOtherKeys: true)
print(change.formerKey == .refused)                                     // true: everything was re-encrypted

let backup = folder.appending(path: "backup.coffer")
print(try notes.backup(to: backup, encryptionKey: key).documentCount)   // 1000
print(try notes.verify().isSound)                                       // true
try notes.close()
// snippet.end
