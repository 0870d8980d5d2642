internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import Synchronization

/// A view or a declared index, as somebody wants it to be.
struct IndexDefinition: Sendable {
    let kind: IndexKind
    let name: String
    /// A view's version, or as JSON a declared index's paths, or what a text index is over. Entries that were made for another
    /// definition are rebuilt.
    let definition: String
    let content: IndexContent

    init(
        kind: IndexKind, name: String, definition: String,
        map: @escaping @Sendable (SavedRevision) throws -> [MappedEntry]
    ) {
        (self.kind, self.name, self.definition, content) = (kind, name, definition, .entries(map))
    }

    /// A text index.
    init(named name: String, _ definition: TextDefinition, _ analyzer: TextAnalyzer) {
        (kind, self.name, self.definition) = (.text, name, definition.json)
        content = .text(definition, analyzer)
    }

    /// - Throws: `invalidArgument` (400).
    func check() throws(CofferError) {
        guard (1...IndexSchema.nameByteLimit).contains(name.utf8.count) else {
            throw CofferError(
                .invalidArgument, "the name of a view or an index must have 1 to \(IndexSchema.nameByteLimit) bytes")
        }
        guard definition.utf8.count <= IndexSchema.definitionByteLimit else {
            throw CofferError(
                .invalidArgument, of: "index \(name)",
                "its version or its properties' paths have more than \(IndexSchema.definitionByteLimit) bytes")
        }
    }
}

/// What an index has of a document.
enum IndexContent: Sendable {
    /// The entries that a function makes. What it throws leaves the document without.
    case entries(@Sendable (SavedRevision) throws -> [MappedEntry])
    /// The terms of its texts.
    case text(TextDefinition, TextAnalyzer)
}

/// An entry that a document is to have in an index.
struct MappedEntry: Sendable {
    /// A ``CollationKey``'s bytes.
    var key: [UInt8]
    /// JSON in canonical form; nil for null.
    var value: [UInt8]?
}
