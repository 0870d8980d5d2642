/// One thing in a database file that is not what was written.
package struct Damage: Sendable, Equatable {
    package enum Kind: Sendable {
        /// A page of the file or of its log.
        case page
        /// How pages, tables and indexes hang together.
        case structure
        /// A document, one of its revisions, or a local document.
        case document
        /// A content's row.
        case attachment
    }

    package let kind: Kind
    /// Which one: `page 17`, or `document invoice-4`.
    package let subject: String
    /// What is wrong with it.
    package let detail: String
    /// The number of the page, from 1; nil for anything else.
    package let page: Int?
    /// The document's id, where it is known.
    package let documentID: String?
    /// The digest of the content, for one of a document.
    package let digest: String?

    package init(
        _ kind: Kind, _ subject: String, _ detail: String, page: Int? = nil, documentID: String? = nil,
        digest: String? = nil
    ) {
        self.kind = kind
        self.subject = subject
        self.detail = detail
        self.page = page
        self.documentID = documentID
        self.digest = digest
    }
}
