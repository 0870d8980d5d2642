// The first sample of README.
// snippet.first
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
// snippet.end
