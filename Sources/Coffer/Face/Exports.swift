// Public types that live in a lower layer are part of this module, by name. An alias would not do: beside another
// library's SymmetricKey a client could not say Coffer.SymmetricKey.
@_exported public import class CofferModel.Blob
@_exported public import struct CofferModel.JSONNumber
@_exported public import struct CofferModel.JSONObject
@_exported public import enum CofferModel.JSONValue
@_exported public import protocol CofferModel.JSONConvertible
@_exported public import struct CofferModel.DocumentPredicate
@_exported public import struct CofferModel.PropertyPath
@_exported public import struct CofferModel.SearchQuery
@_exported public import struct CofferModel.RevisionID
@_exported public import struct CofferSealing.CofferError
@_exported public import class CofferSealing.SymmetricKey
