// A newcomer's program, as docs/FIRST-HOUR.md shows it. It keeps its store in the folder that it runs in.
// snippet.recipes
import Coffer
import Foundation

struct Recipe: Codable { var title: String; var minutes: Int }

let manager = try Manager(directory: URL(filePath: "stores"))
let key = SymmetricKey(password: "bread and butter")
let recipes = try manager.database(named: "recipes", encryptionKey: key)

try recipes.save(Recipe(title: "Pancakes", minutes: 20))
try recipes.save(Recipe(title: "Dal", minutes: 40))
for revision in try recipes.documents(DocumentQuery(where: Property("minutes") < 30)).all {
    print(try revision.decode(Recipe.self).title)           // Pancakes: once more each time the program runs
}
// snippet.end
