internal import CofferModel
internal import CofferRecords
internal import CofferSealing

extension Storage {
    /// What users know a content as, for errors: an attachment of a document that uses it.
    func subjectOfContent(_ row: AttachmentRow) -> String {
        let digest: String
        switch row.key {
        case .sha1(let bytes): digest = SHA1Digest.text(of: bytes)
        case .foreign(let text): digest = text
        }
        let number = row.number
        let use = try? readCommitted { (tables) throws(CofferError) in try tables.firstUse(ofAttachment: number) }
        guard let (document, body) = use ?? nil else { return "a content of \(subject)" }
        let stubs = (try? JSONObject(canonical: body.span).attachmentStubs()) ?? []
        guard let stub = stubs.first(where: { $0.stub.digest == digest }) else {
            return "a blob of document \(document) of \(subject)"
        }
        return "attachment \(stub.name) of document \(document) of \(subject)"
    }
}
