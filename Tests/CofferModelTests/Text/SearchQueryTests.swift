import Testing

@testable import CofferModel

@Suite("Queries as people type them")
struct SearchQueryTests {
    private typealias Node = SearchQuery.Node

    private func word(_ text: String) -> SearchQuery.Node { .phrase(text, isBeginning: false) }
    private func beginning(_ text: String) -> SearchQuery.Node { .phrase(text, isBeginning: true) }

    @Test("A query is read as words, phrases, beginnings and operators")
    func grammar() {
        #expect(SearchQuery("robin").node == word("robin"))
        #expect(SearchQuery("robin berlin").node == .all([word("robin"), word("berlin")]))
        #expect(SearchQuery("robin AND berlin").node == .all([word("robin"), word("berlin")]))
        #expect(SearchQuery("robin OR berlin").node == .any([word("robin"), word("berlin")]))
        #expect(SearchQuery("rob*").node == beginning("rob"))
        #expect(SearchQuery("\"robin ber*\"").node == beginning("robin ber"))
        #expect(SearchQuery("\"robin ber\"*").node == beginning("robin ber"))
        #expect(SearchQuery("robin -berlin").node == .excluding(word("robin"), word("berlin")))
        #expect(SearchQuery("robin NOT berlin").node == .excluding(word("robin"), word("berlin")))
        #expect(SearchQuery("-berlin robin").node == .excluding(word("robin"), word("berlin")))
        #expect(SearchQuery("a NEAR b").node == .near(["a", "b"], distance: 10))
        #expect(SearchQuery("a NEAR/3 b NEAR/3 c").node == .near(["a", "b", "c"], distance: 3))
        #expect(SearchQuery("(a OR b) c").node == .all([.any([word("a"), word("b")]), word("c")]))
        #expect(SearchQuery("a b OR c d").node == .any([.all([word("a"), word("b")]), .all([word("c"), word("d")])]))
        #expect(SearchQuery("a -(b OR c)").node == .excluding(word("a"), .any([word("b"), word("c")])))
        #expect(SearchQuery("„ein Wort“ «un mot»").node == .all([word("ein Wort"), word("un mot")]))
    }

    @Test("A property in a query stands before a colon, and may be no property")
    func paths() {
        #expect(SearchQuery("title:robin").node == .within("title", word("robin"), otherwise: word("title:robin")))
        #expect(SearchQuery("title:rob*").node == .within("title", beginning("rob"), otherwise: beginning("title:rob")))
        #expect(SearchQuery("title:\"a b\"").node == .within("title", word("a b"), otherwise: word("title:a b")))
        #expect(
            SearchQuery("title:a OR body:b").node
                == .any([
                    .within("title", word("a"), otherwise: word("title:a")),
                    .within("body", word("b"), otherwise: word("body:b")),
                ]))
        #expect(SearchQuery(":a").node == word(":a"))
        #expect(SearchQuery("a:").node == word("a:"))
    }

    @Test("A query that makes no sense is what it probably means, and never an error")
    func nonsense() {
        #expect(SearchQuery("\"robin ber").node == word("robin ber"))
        #expect(SearchQuery("(a OR (b c").node == .any([word("a"), .all([word("b"), word("c")])]))
        #expect(SearchQuery("a) b").node == .all([word("a"), word("b")]))
        #expect(SearchQuery("OR a OR").node == word("a"))
        #expect(SearchQuery("NEAR a").node == word("a"))
        #expect(SearchQuery("a NEAR").node == word("a"))
        #expect(SearchQuery("a - b").node == .all([word("a"), word("b")]))
        #expect(SearchQuery("well-known").node == word("well-known"))
        for text in ["", "   ", "-a", "NOT a", "()", "((()))", "OR", "AND", "\"\"", "-", "\"", "*"] {
            // Nothing to look for, whether it has no words or only excludes.
            switch SearchQuery(text).node {
            case .nothing, .phrase("", _): break
            case let node: Issue.record("\(text): \(node)")
            }
        }
    }

    @Test("A query with a thousand brackets and ten thousand words is read, no deeper than a limit")
    func large() {
        let nested = SearchQuery(String(repeating: "(a ", count: 5_000) + String(repeating: ")", count: 5_000) + " b")
        #expect(nested.depth <= SearchQueryParser.depthLimit)
        guard case .all(let words) = SearchQuery(String(repeating: "word ", count: 10_000)).node else {
            Issue.record("not all words")
            return
        }
        #expect(words.count == 10_000)
    }

    @Test("Queries that are built equal those that are typed")
    func built() {
        #expect(SearchQuery.words("robin berlin").node == SearchQuery("robin berlin").node)
        #expect(SearchQuery.words("-a OR").node == .all([word("-a"), word("OR")]))
        #expect(SearchQuery.phrase("robin berlin").node == SearchQuery("\"robin berlin\"").node)
        #expect(SearchQuery.all(.prefix("caf"), "b").excluding("noir").node == SearchQuery("caf* b -noir").node)
        #expect(SearchQuery.near("a", "b", distance: 3).node == SearchQuery("a NEAR/3 b").node)
        #expect(SearchQuery.any("a", "b").node == SearchQuery("a OR b").node)
    }
}
