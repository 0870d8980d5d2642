internal import Coffer
internal import CofferModel

/// What is asked of a view, in a query's parameters or in a body's members.
struct ViewQuery: Sendable {
    private(set) var options = ViewOptions()
    private(set) var wantsSequence = false
    /// What the answer says about each document.
    private(set) var revision = RevisionQuery()
    /// Nil where nothing is said: what can be reduced is.
    private(set) var reduces: Bool?
    private(set) var groups = false

    /// - Throws: ``NamedRefusal`` 400 for a parameter that no view has, and for a value that it can't have.
    mutating func set(_ name: String, _ value: ParameterValue) throws(NamedRefusal) {
        do throws(SyncError) {
            try take(name, value)
        } catch {
            throw Self.refusal(error.detail)
        }
    }

    private static func refusal(_ reason: String) -> NamedRefusal {
        NamedRefusal(status: 400, name: "query_parse_error", reason: reason)
    }

    private mutating func take(_ name: String, _ value: ParameterValue) throws(SyncError) {
        switch name {
        case "keys": options.keys = try value.list(name)
        case "key":
            options.startKey = .some(try value.json(name))
            options.endKey = options.startKey
        case "startkey", "start_key": options.startKey = .some(try value.json(name))
        case "endkey", "end_key": options.endKey = .some(try value.json(name))
        case "startkey_docid", "start_key_doc_id": options.startDocumentID = value.plainText
        case "endkey_docid", "end_key_doc_id": options.endDocumentID = value.plainText
        case "limit": options.limit = try value.count(name)
        case "skip": options.skip = try value.count(name)
        case "descending": options.isDescending = try value.isTrue(name)
        case "inclusive_end": options.includesEnd = try value.isTrue(name)
        case "include_docs": options.loadsDocuments = try value.isTrue(name)
        case "reduce": reduces = try value.isTrue(name)
        case "group":
            groups = try value.isTrue(name)
            if groups { options.groupLevel = .max }
        case "group_level":
            let level = try value.count(name)
            options.groupLevel = level > 0 ? level : nil
            groups = level > 0
        case "update_seq": wantsSequence = try value.isTrue(name)
        case "attachments": revision.wantsContents = try value.isTrue(name)
        case "conflicts": revision.wantsConflicts = try value.isTrue(name)
        case "att_encoding_info", "sorted", "stable": _ = try value.isTrue(name)
        case "update":
            switch try value.word(name, among: ["true", "false", "lazy"]) {
            case "false": options.update = .never
            case "lazy": options.update = .after
            default: options.update = .before
            }
        case "stale":
            options.update = try value.word(name, among: ["ok", "update_after"]) == "ok" ? .never : .after
        default: throw SyncError(400, "\(name.shortened(to: 100)) is not a parameter of a view")
        }
    }

    /// Whether rows are reduced, for a view that can be or not.
    ///
    /// - Throws: ``NamedRefusal`` 400 for what doesn't go together.
    func isReduced(_ canReduce: Bool) throws(NamedRefusal) -> Bool {
        guard canReduce || reduces != true else { throw Self.refusal("Reduce is invalid for map-only views.") }
        let isReduced = canReduce && reduces != false
        guard isReduced || !groups else { throw Self.refusal("Invalid use of grouping on a map view.") }
        guard isReduced else { return false }
        guard !options.loadsDocuments else { throw Self.refusal("`include_docs` is invalid for reduce") }
        guard options.keys == nil || groups else {
            throw Self.refusal("Multi-key fetches for reduce views must use `group=true`")
        }
        return true
    }
}
