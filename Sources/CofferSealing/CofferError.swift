/// An error of Coffer's: what went wrong, its subject, and its cause.
///
/// Every error that Coffer throws is of this type, but for those that your own closures throw. Tell errors apart by
/// ``code``, or by ``status`` where an HTTP-like number is enough: a wrong key has status 401, always, and nothing else
/// has. Two errors are equal when their codes are.
///
/// Descriptions hold names, ids, sizes and offsets. They never hold the content of documents or attachments, passwords
/// or key bytes.
public struct CofferError: Error, Sendable {
    /// The kind of error.
    public let code: Code

    /// The subject of the error, such as `database people` or `document invoice-17`.
    public let subject: String?

    /// A few words about what happened, if the code alone does not say it.
    public let detail: String?

    /// The error that led to this one.
    public let cause: (any Error)?

    package init(_ code: Code, of subject: String? = nil, _ detail: String? = nil, cause: (any Error)? = nil) {
        self.code = code
        self.subject = subject
        self.detail = detail
        self.cause = cause
    }

    /// The status of ``code``: 400 a bad argument, 401 a key that does not open the store, 403 not allowed, 404 missing,
    /// 409 a conflict, 412 already there, 499 cancelled, 500 damaged or failed, 501 not possible here, 503 busy, 507 full.
    public var status: Int { code.status }

    /// The same error, said of `subject`, where it does not yet say what it happened to.
    package func about(_ subject: String) -> CofferError {
        CofferError(code, of: self.subject ?? subject, detail, cause: cause)
    }
}

extension CofferError: Equatable {
    /// Whether both errors have the same ``CofferError/code``.
    public static func == (left: CofferError, right: CofferError) -> Bool { left.code == right.code }
}

extension CofferError: Codable {
    private enum CodingKeys: String, CodingKey {
        case code, subject, detail
    }

    /// The error that was encoded, without its ``cause``. A code that this version doesn't know is ``Code/ioFailed``.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            Code(named: try values.decode(String.self, forKey: .code)) ?? .ioFailed,
            of: try values.decodeIfPresent(String.self, forKey: .subject),
            try values.decodeIfPresent(String.self, forKey: .detail))
    }

    /// Encodes what is said of the error, without its ``cause``.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(code.description, forKey: .code)
        try values.encodeIfPresent(subject, forKey: .subject)
        try values.encodeIfPresent(detail, forKey: .detail)
    }
}

extension CofferError: CustomStringConvertible {
    /// One line that ends in the status, such as `database people: wrong key (401)`.
    public var description: String {
        let what = detail.map { "\(code.meaning): \($0)" } ?? code.meaning
        return (subject.map { "\($0): " } ?? "") + "\(what) (\(status))"
    }
}

extension CofferError {
    /// A kind of error. The list is open: later versions may add codes, so a `switch` over it needs a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String {
            case invalidDatabaseName, invalidDocumentID, invalidKey, invalidJSON, invalidAttachment, invalidArgument
            case wrongKey, keyRequired, notEncrypted
            case readOnly, rejected, notOwner
            case databaseNotFound, documentNotFound, revisionNotFound, attachmentNotFound, notAStore
            case storageTypeUnavailable
            case conflict, digestCollision, otherKeysExist
            case databaseExists, databaseOpen
            case cancelled
            case damaged, ioFailed, reopenRequired, closed
            case encryptionUnavailable, unsupportedFormat
            case busy
            case noSpace
        }

        private let kind: Kind

        private init(_ kind: Kind) { self.kind = kind }

        /// The code of that name; nil if there isn't one.
        fileprivate init?(named name: String) {
            guard let kind = Kind(rawValue: name) else { return nil }
            self.kind = kind
        }

        /// The code's name, such as `wrongKey`.
        public var description: String { kind.rawValue }

        /// A database name that is empty, too long or holds a character that names may not hold. Status 400.
        public static let invalidDatabaseName = Code(.invalidDatabaseName)
        /// A document id that is empty, longer than 900 bytes, or starts with `_`. Status 400.
        public static let invalidDocumentID = Code(.invalidDocumentID)
        /// Key bytes of another length than 32, a password that is empty or holds U+0000. Status 400.
        public static let invalidKey = Code(.invalidKey)
        /// Bytes that are not JSON, or JSON that a document cannot hold. Status 400.
        public static let invalidJSON = Code(.invalidJSON)
        /// An attachment that cannot be stored as given. Status 400.
        public static let invalidAttachment = Code(.invalidAttachment)
        /// An argument or a call that makes no sense where it is made. Status 400.
        public static let invalidArgument = Code(.invalidArgument)
        /// The key opens none of the store's key slots. Status 401.
        public static let wrongKey = Code(.wrongKey)
        /// The store is encrypted and no key was given. Status 401.
        public static let keyRequired = Code(.keyRequired)
        /// A key was given for a store that is not encrypted. Status 401.
        public static let notEncrypted = Code(.notEncrypted)
        /// The database was opened for reading only. Status 403.
        public static let readOnly = Code(.readOnly)
        /// A validation function refused the revision. Status 403.
        public static let rejected = Code(.rejected)
        /// The store belongs to another user of the machine; root, too, is refused that unless told otherwise. Status 403.
        public static let notOwner = Code(.notOwner)
        /// There is no database of that name. Status 404.
        public static let databaseNotFound = Code(.databaseNotFound)
        /// There is no document with that id, or it is deleted. Status 404.
        public static let documentNotFound = Code(.documentNotFound)
        /// The document has no such revision, or its body was compacted away. Status 404.
        public static let revisionNotFound = Code(.revisionNotFound)
        /// The revision has no attachment of that name. Status 404.
        public static let attachmentNotFound = Code(.attachmentNotFound)
        /// There is something of that name, but it is not a store. Status 404.
        public static let notAStore = Code(.notAStore)
        /// The storage engine asked for is not part of this build. Status 406.
        public static let storageTypeUnavailable = Code(.storageTypeUnavailable)
        /// The parent revision is not a leaf any more, or the document exists already. Of keys: there are eight, the key
        /// opens the database already, or it is the only one. Status 409.
        public static let conflict = Code(.conflict)
        /// Another content with the same SHA-1 is in the store. Status 409.
        public static let digestCollision = Code(.digestCollision)
        /// The store has other keys that were neither kept nor dropped. Status 409.
        public static let otherKeysExist = Code(.otherKeysExist)
        /// A database of that name exists. Status 412.
        public static let databaseExists = Code(.databaseExists)
        /// The database is open. Status 412.
        public static let databaseOpen = Code(.databaseOpen)
        /// The operation was cancelled before it changed anything. Status 499.
        public static let cancelled = Code(.cancelled)
        /// Bytes on the disk are not what was written; the error names the object. Never a wrong key. Status 500.
        public static let damaged = Code(.damaged)
        /// The system refused to read or write. Status 500.
        public static let ioFailed = Code(.ioFailed)
        /// An earlier write failed; close the database and open it again. Status 500.
        public static let reopenRequired = Code(.reopenRequired)
        /// The database was closed or deleted. Status 500.
        public static let closed = Code(.closed)
        /// SQLCipher is missing, or what was loaded is not SQLCipher. Status 501.
        public static let encryptionUnavailable = Code(.encryptionUnavailable)
        /// The store was made by a later version, or uses what this system cannot do. Status 501.
        public static let unsupportedFormat = Code(.unsupportedFormat)
        /// Another process holds the store, or a wait ended. Status 503.
        public static let busy = Code(.busy)
        /// The disk is full. Status 507.
        public static let noSpace = Code(.noSpace)

        /// The HTTP-like number of this kind of error; see ``CofferError/status``.
        public var status: Int {
            switch kind {
            case .invalidDatabaseName, .invalidDocumentID, .invalidKey, .invalidJSON, .invalidAttachment,
                .invalidArgument:
                400
            case .wrongKey, .keyRequired, .notEncrypted: 401
            case .readOnly, .rejected, .notOwner: 403
            case .databaseNotFound, .documentNotFound, .revisionNotFound, .attachmentNotFound, .notAStore: 404
            case .storageTypeUnavailable: 406
            case .conflict, .digestCollision, .otherKeysExist: 409
            case .databaseExists, .databaseOpen: 412
            case .cancelled: 499
            case .damaged, .ioFailed, .reopenRequired, .closed: 500
            case .encryptionUnavailable, .unsupportedFormat: 501
            case .busy: 503
            case .noSpace: 507
            }
        }

        fileprivate var meaning: String {
            switch kind {
            case .invalidDatabaseName: "invalid database name"
            case .invalidDocumentID: "invalid document id"
            case .invalidKey: "invalid key"
            case .invalidJSON: "invalid JSON"
            case .invalidAttachment: "invalid attachment"
            case .invalidArgument: "invalid argument"
            case .wrongKey: "wrong key"
            case .keyRequired: "key required"
            case .notEncrypted: "not encrypted"
            case .readOnly: "read-only"
            case .rejected: "rejected"
            case .notOwner: "not the owner"
            case .databaseNotFound: "database not found"
            case .documentNotFound: "document not found"
            case .revisionNotFound: "revision not found"
            case .attachmentNotFound: "attachment not found"
            case .notAStore: "not a store"
            case .storageTypeUnavailable: "storage type unavailable"
            case .conflict: "conflict"
            case .digestCollision: "digest collision"
            case .otherKeysExist: "other keys exist"
            case .databaseExists: "database exists"
            case .databaseOpen: "database is open"
            case .cancelled: "cancelled"
            case .damaged: "damaged"
            case .ioFailed: "input or output failed"
            case .reopenRequired: "reopen required"
            case .closed: "closed"
            case .encryptionUnavailable: "encryption unavailable"
            case .unsupportedFormat: "unsupported format"
            case .busy: "busy"
            case .noSpace: "no space left"
            }
        }
    }
}
