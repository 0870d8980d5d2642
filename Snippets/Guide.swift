// The samples of docs/GUIDE.md, in its order: one program, which goes on where the first sample of README ends.
import Coffer
import Foundation

let folder = URL.temporaryDirectory.appending(path: "coffer-readme-\(UUID())")
let manager = try Manager(directory: folder)      // Manager.shared keeps its stores in the app's usual place

var options = DatabaseOptions()
options.create = true
options.encryptionKey = SymmetricKey(password: "password123456")
let database = try manager.openDatabase(named: "people", options: options)

let draft = try database.document(withID: "Robin").newRevision()
draft["name"] = "Robin"
draft["age"] = 31
try draft.save()                                  // on the disk when it returns

let age: Int? = try database["Robin"]?.currentRevision?["age"]
print(age ?? 0)                                   // 31

options.encryptionKey = SymmetricKey(password: "a guess")
do {
    _ = try manager.openDatabase(named: "people", options: options)
} catch {
    print(error.status, error.code == .wrongKey)  // 401 true
}

// snippet.keys
let stored = try SymmetricKey(data: Data(repeating: 7, count: 32))   // from a key store; any other length is a 400
let random = try SymmetricKey()                                      // 32 random bytes
let copy = random.withBytes { Data($0) }                             // to be kept somewhere safe
// snippet.end

// snippet.keys-2
let recovery = try database.addKey(random, label: "recovery")         // the label is kept in the database, encrypted
try database.replaceKey(with: SymmetricKey(password: "a better one")) // replaces the key that opened it
for key in try database.keys { print(key.id, key.kind, key.label ?? "", key.created, key.isCurrent) }
try database.removeKey(recovery.id)                                   // never the last one: a 409
// snippet.end

// snippet.changing-the-encryption-key
let change = try database.changeEncryptionKey(to: SymmetricKey(password: "password123457"))
print(change.newGeneration, change.formerKey == .refused, change.oldGenerationIsGone)   // 2 true true
// snippet.end

// snippet.keys-of-a-service
import CofferKeys

do {
    let machineKey = try SymmetricKey(from: .credential("coffer"))
    _ = try manager.database(named: "machine", encryptionKey: machineKey)
} catch let error as KeySourceError {
    print(error)                                          // no service of systemd runs this, or it was given no such credential
}
// snippet.end

// snippet.opening
let diary = try manager.database(named: "diary", encryptionKey: stored)   // opens it, or creates it
let notes = try manager.database(named: "notes")                          // created without a key: not encrypted
let catalog = try manager.existingDatabase(named: "catalog")              // nil if it doesn't exist
print(try manager.allDatabaseNames, diary.isEncrypted, notes.isEncrypted, catalog == nil)
// snippet.end

// snippet.choosing-a-storage-engine
var archiveOptions = DatabaseOptions()
archiveOptions.create = true
archiveOptions.encryptionKey = stored
archiveOptions.storageType = .sealed                // an existing database is converted before it is opened
let archive = try manager.openDatabase(named: "archive", options: archiveOptions)
try archive.convert(to: .sqlite)                    // in place; nil if it has that engine already
print(archive.storageType.rawValue)                 // SQLite
// snippet.end

// snippet.closing-and-deleting
try notes.delete()
try diary.close()
try manager.deleteDatabase(named: "diary")
// snippet.end

// snippet.documents-and-revisions
let robin = database.document(withID: "Robin")            // touches no disk; createDocument() makes an id
let revision = try robin.currentRevision                  // nil if the document doesn't exist, or is deleted
let name: String? = try revision?["name"]                 // Int, Bool, Date, arrays, …; nil if it is another type
print(name ?? "", revision?.revisionID.description ?? "", try robin.properties?.keys ?? [])

let edit = try revision?.createRevision()
edit?["nickname"] = "Rob"
edit?["age"] = nil                                        // removes it; .null would keep it as JSON's null
edit?.properties["tags"] = ["a", "b"]
try edit?.save()

do {
    let late = try revision?.createRevision()             // made from a revision that has been replaced
    late?["nickname"] = "Bobby"
    try late?.save()
} catch {
    print(error.status)                                   // 409; saveAllowingConflict() makes a branch
}
for old in try robin.currentRevision?.history ?? [] { print(old.revisionID, try old.properties["age"] == 31) }
try robin.delete()                                        // itself a revision; the id can be used again
try robin.purge()                                         // no revision: it is gone without a trace, and nobody is notified
print(try database.documentIDs(after: nil, limit: 100), try database.documentCount)
// snippet.end

// snippet.conflicts
let theirs = #"{"_id":"Robin","_rev":"2-b","_revisions":{"start":2,"ids":["b","a"]},"nickname":"R."}"#
print(try database.putExistingRevision(json: Data(theirs.utf8)).isBranch)
for leaf in try robin.conflictingRevisions { print(leaf.revisionID, try leaf.properties) }    // the winning one first
try robin.resolveConflicts { draft, others in             // the draft follows the winning one; the others are deleted
    for other in others where draft["nickname"] == nil { draft["nickname"] = try other["nickname"] }
}
// snippet.end

// snippet.mutable-documents
let task = MutableDocument(id: "task-1", ["type": "task", "done": false])
try database.saveDocument(task)
task["done"] = true
try database.saveDocument(task)                           // or concurrencyControl: .lastWriteWins
try database.saveDocument(task) { mine, theirs in         // called if somebody else has saved it since
    mine["done"] = try theirs?["done"]
    return true                                           // false keeps theirs: a 409
}
let again = try database.document(withID: "task-1").toMutable()
try database.deleteDocument(again)
// snippet.end

// snippet.updating
try database.update("Robin") { draft in
    let visits: Int? = draft["visits"]
    draft["visits"] = (visits ?? 0) + 1
}
// snippet.end

// snippet.your-own-types
struct Person: Codable { var name: String; var age: Int; var born: Date? }

let first = try database.save(Person(name: "Kim", age: 40), withID: "person-1")
try database.save(Person(name: "Kim", age: 41), withID: "person-1", replacing: first.revisionID)
try database.update("person-1", as: Person.self) { $0.age += 1 }   // reads, changes and saves in one transaction
let kim = try database.document(withID: "person-1").decode(Person.self)
print(kim.age)                                                     // 42
// snippet.end

// snippet.json
let saved = try database.save(json: Data(#"{"_id": "n-1", "big": 9007199254740993, "half": 0.50}"#.utf8))
print(String(decoding: try saved.json, as: UTF8.self))             // {"big":9007199254740993,"half":0.5}
let cups = 2
try database.save(["tea": "green", "cups": JSONValue(cups), "hot": true], withID: "n-2")     // values of any kind
// snippet.end

// snippet.attachments
let film = folder.appending(path: "film.mp4")
try Data(count: 3_000_000).write(to: film)
let album = try database.document(withID: "album").newRevision()
album.setAttachment(named: "notes", contentType: "text/plain", content: Data("by the sea".utf8))
try album.setAttachment(named: "film", contentType: "video/mp4", contentsOf: film)    // or an InputStream, or an AsyncSequence of UInt8
try album.save()                                                          // later revisions keep what they don't remove
if let film = try database["album"]?.currentRevision?.attachment(named: "film") {
    print(film.length, film.digest, try film.content(in: 100..<200)?.count ?? 0)      // content: the whole
    try film.chunks?.forEach { piece in print(piece.count) }              // 1 MiB each; in async code: for try await … in try film.chunks!
}
// snippet.end

// snippet.blobs
let card = MutableDocument(id: "card", ["name": "Robin"])
card.setBlob(Blob(contentType: "text/plain", data: Data("a picture".utf8)), forKey: "avatar")
try database.saveDocument(card)
print(try database["card"]?.currentRevision?.blob(forKey: "avatar")?.content?.count ?? 0)    // 9
// snippet.end

// snippet.compaction
print(try database.compact().attachmentCount)                // 0: every content is still used
// snippet.end

// snippet.transactions
try database.inTransaction {
    for number in 0..<1_000 { try database.save(json: Data(#"{"number": \#(number)}"#.utf8)) }
}
// snippet.end

// snippet.watching
let token = database.addChangeListener { commit in        // on: queue; by default, on a queue of its own
    for change in commit.changes { print(change.documentID, change.isDeletion, change.sequence) }
}
let watching = Task {
    for await commit in database.changes {                // or database.document(withID: "Robin").changes
        switch commit {
        case .committed(let changes): print(changes.count)
        case .missed(let sequence): print("ask for changes(since: \(sequence))")   // more than 1,024 commits behind
        }
    }
}
token.remove()
watching.cancel()
// snippet.end

// snippet.tasks
@MainActor
func rename(_ database: Database) async throws {
    let draft = try database.document(withID: "task-2").newRevision()
    draft["title"] = "Water the plants"
    try await draft.save()
    try await database.inTransaction { _ = try database.save(json: Data("{}".utf8), withID: "task-3") }
}
// snippet.end

// snippet.listing
var query = AllDocumentsOptions()                         // by id or sequence, ranges, keys, limits, deleted ones
query.startID = "person-"
query.endID = "person-\u{10FFFF}"
try database.allDocuments(query).forEach { revision in print(revision.document.documentID, try revision.properties) }
try database.forEachDocument(query) { document in print(document.documentID, document.json.byteCount) }
for change in try database.changes(since: 0).all { print(change.sequence, change.documentID, change.isDeletion) }

database.setFilter(named: "by type") { revision, parameters in try revision["type"] == parameters["type"] }
var feed = FeedOptions()
(feed.filter, feed.filterParameters) = ("by type", ["type": "task"])
print(try database.changes(since: 0, options: feed).all.count)
// snippet.end

// snippet.queries
let berliners = DocumentQuery(where: Property("address.city") == "Berlin" && Property("age") >= 18)
try database.createIndex(named: "by city", on: "address.city", "age")
print(try database.explain(berliners))                    // reads the index by city, narrowed by address.city, age
for person in try database.documents(berliners).all { print(person.documentID) }

var oldest = try DocumentQuery(where: "age >= 18 and not retired = true")      // checked when it is made
oldest.order = [.descending("age")]
oldest.limit = 10

let zoes = DocumentQuery(where: Property("name").contains("zoe", ignoring: [.case, .accents]))
let same = try DocumentQuery(where: "name contains 'zoe' ignoring case, accents")
let nameless = DocumentQuery(where: Property("name") == nil || !Property("name").is(.string))
try database.createIndex(named: "tags", on: "tags[]")     // an entry for each element
print(try database.explain(DocumentQuery(where: Property("tags").hasElement("new"))))
print(try database.documents(DocumentQuery(where: "any items (it.price > 100 and not it.sold = true)")).all.count)
// snippet.end

// snippet.queries-2
for row in try database.rows(["age", "address.city"], of: berliners).all { print(row["age"] ?? "", row["address.city"] ?? "") }
for row in try database.distinctRows(["type", "address.city"]).all { print(row["type"] ?? "", row["address.city"] ?? "") }
let report = database.groups(by: ["address.city"], of: berliners, .count, .min("age"), .average("age"))
for row in try report.all { print(row["address.city"] ?? "", row.aggregates) }
// snippet.end

// snippet.searching-texts
try database.createTextIndex(named: "texts", on: ["title", "body"])
try database.save(["title": "Crème brûlée", "body": "A dessert of France, burnt on top."], withID: "dessert")
for hit in try database.search("texts", for: #"creme -noir "burnt on""#, weights: ["title": 3]).all {
    print(hit.documentID, try hit.snippet(of: "body", words: 4) { "<b>\($0)</b>" } ?? "")
}
let typed = SearchQuery("title:crem* OR (dessert NEAR/3 france)")      // whatever somebody types is a query
let built = SearchQuery.any(SearchQuery.prefix("crem").within("title"), .near("dessert", "france", distance: 3))
print(try database.searchCount("texts", for: typed) == database.searchCount("texts", for: built))
// snippet.end

// snippet.views
let ages = database.view(named: "ages by city")
try ages.setMap(version: "1", documentType: "person", reduction: .stats) { person, emit in
    if let city = try person["city"], let age = try person["age"] { emit([city, age] as [JSONValue], age) }
}
var rows = ViewOptions()                                   // ranges, prefixes, key lists, limits, filters, groups
(rows.startKey, rows.endKey, rows.prefixMatchLevel) = (["Berlin"], ["Berlin"], 1)
for row in try ages.rows(rows).all { print(row.key, row.documentID) }
rows.groupLevel = 1
print(try ages.reducedRows(rows).all.first?.value ?? .null)

func follow(_ view: DatabaseView, _ options: ViewOptions) async throws {
    for try await result in view.liveRows(options) {       // and database.liveDocuments(query)
        print(try result.rows.all.count)                   // again after each commit that changed these rows
    }
}
// snippet.end

// snippet.validations
database.setValidation(named: "titles") { revision in
    if try revision["type"] == "task", try revision["title"] == nil { try revision.reject("a task needs a title") }
}
// snippet.end

// snippet.local-documents
try database.saveLocalDocument(["since": 17], withID: "checkpoint")
print(try database.localDocument(withID: "checkpoint")?["since"] == 17)
// snippet.end

// snippet.expiration
try database.document(withID: "n-1").setExpirationDate(Date(timeIntervalSinceNow: 3_600))
// snippet.end

// snippet.backups-and-bundled-databases
let bundle = folder.appending(path: "backup.coffer")
print(try database.backup(to: bundle, encryptionKey: stored).documentCount)    // nil would make it readable
try manager.replaceDatabase(named: "installed", withDatabaseAt: bundle, encryptionKey: stored)
// snippet.end

// snippet.proving-encryption-in-your-tests
import CofferTesting

let stores = TemporaryStores()                            // a folder that lives as long as its databases; passwords cost little
let key = SymmetricKey(password: "password123456")
let mine = try stores.manager.database(named: "mine", encryptionKey: key)
try mine.save(json: Data(#"{"text": "nobody else writes this"}"#.utf8))
let place = stores.url(ofDatabaseNamed: "mine")
try expectNothingReadable(of: ["nobody else writes this"], in: place)      // nor as UTF-16, hex or base64
try expectUnauthorized(at: place, key: key)               // every wrong key is a 401, and no byte changes
// snippet.end

// snippet.verifying
let verification = try stores.manager.verifyDatabase(named: "mine", encryptionKey: key)     // or database.verify(.pages)
print(verification.isSound, verification.pageCount, verification.documentCount)
for finding in verification.findings { print(finding.kind, finding.subject, finding.detail) }
// snippet.end

// snippet.salvaging
try mine.close()                                          // while it is open, salvaging is a 412
let salvaged = folder.appending(path: "mine-salvaged.coffer")
let salvage = try stores.manager.salvageDatabase(named: "mine", encryptionKey: key, to: salvaged)   // or with a newKey:
print(salvage.isComplete, salvage.documentCount, salvage.attachmentCount)
for loss in salvage.losses { print(loss.kind, loss.subject, loss.detail) }
// snippet.end

// snippet.logging
CofferLog.setHandler(level: .info) { message in
    FileHandle.standardError.write(Data("\(message.level) \(message)\n".utf8))
    // database people: compacted (bytes 1048576, …)
}
// snippet.end

// Nothing is left behind.
try database.close()
try FileManager.default.removeItem(at: folder)
