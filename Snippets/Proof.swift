// How an app's tests prove that its store is encrypted, as README shows it.
import Coffer
import Foundation

let key = SymmetricKey(password: "password123456")

// snippet.proof
import CofferTesting

let stores = TemporaryStores()                                          // removed when the last database is gone
let notes = try stores.manager.database(named: "notes", encryptionKey: key)
try notes.save(json: Data(#"{"text": "nobody else writes this"}"#.utf8))
let place = stores.url(ofDatabaseNamed: "notes")
try expectNothingReadable(of: ["nobody else writes this"], in: place)   // nor as UTF-16, hex or base64
try expectUnauthorized(at: place, key: key)                             // every wrong key is a 401, and no byte changes
// snippet.end
print("proven")
