internal import CofferModel
internal import CofferSealing

/// What a revision's JSON says of one attachment: everything but its content.
struct AttachmentStub: Sendable, Equatable {
    var contentType: String?
    var digest: String
    var byteCount: Int
    /// The generation in which it was last changed.
    var changedInGeneration: Int

    /// - Throws: `invalidJSON` (400) for what no attachment is, `invalidAttachment` (400) for a length of 2^52 bytes or more.
    init(_ value: JSONValue) throws(CofferError) {
        let length: Int? = value["length"]
        let generation: Int? = value["revpos"]
        let type = value["content_type"]
        guard let object = value.objectValue, case .string(let digest)? = object["digest"], let length, length >= 0,
            let generation, generation > 0, object["stub"] == true, type == nil || type?.stringValue != nil,
            // Content in the JSON itself, and what else there may be, is not kept: so it is not taken.
            object.count == (type == nil ? 4 : 5)
        else { throw CofferError(.invalidJSON, "_attachments holds a value that is not an attachment") }
        // Its row would be taken for damage.
        guard BlobReference.lengths.contains(length) else {
            throw CofferError(.invalidAttachment, "_attachments holds an attachment beyond the limit of length")
        }
        self.init(contentType: type?.stringValue, digest: digest, byteCount: length, changedInGeneration: generation)
    }

    init(contentType: String?, digest: String, byteCount: Int, changedInGeneration: Int) {
        self.contentType = contentType
        self.digest = digest
        self.byteCount = byteCount
        self.changedInGeneration = changedInGeneration
    }

    var json: JSONValue {
        var object: JSONObject = [:]
        object["content_type"] = contentType.map { .string($0) }
        object["digest"] = .string(digest)
        object["length"] = .number(JSONNumber(Int64(byteCount)))
        object["revpos"] = .number(JSONNumber(Int64(changedInGeneration)))
        object["stub"] = true
        return .object(object)
    }
}

extension JSONObject {
    /// The `_attachments` that say all of these.
    init(_ stubs: [(name: String, stub: AttachmentStub)]) {
        self.init()
        for (name, stub) in stubs { self[name] = stub.json }
    }

    /// The attachments that `_attachments` says, in order.
    func attachmentStubs() throws(CofferError) -> [(name: String, stub: AttachmentStub)] {
        guard let value = self["_attachments"] else { return [] }
        guard let object = value.objectValue else {
            throw CofferError(.invalidJSON, "_attachments is not an object")
        }
        var stubs: [(name: String, stub: AttachmentStub)] = []
        for (name, value) in object {
            stubs.append((name, try AttachmentStub(value)))
        }
        return stubs
    }
}
