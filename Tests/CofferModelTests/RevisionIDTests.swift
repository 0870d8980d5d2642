import CofferSealing
import Testing

@testable import CofferModel

@Suite struct RevisionIDTests {
    @Test(
        "ids follow from parent and content",
        arguments: Vectors.read("revisions/revisions.json", as: [Vectors.Revision].self))
    func made(vector: Vectors.Revision) throws {
        let parent = try vector.parent.map { try #require(RevisionID($0)) }
        let body = try DocumentBody(json: Array(vector.canonical.utf8)).body
        #expect(same(text(body), vector.canonical))
        let id = try RevisionID.make(parent: parent, isDeletion: vector.isDeletion, body: body)
        #expect(id.description == vector.revision)
        #expect(RevisionID(vector.revision) == id)
    }
}
