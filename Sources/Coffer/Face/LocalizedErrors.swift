public import CofferSealing
public import Foundation

extension CofferError: LocalizedError {
    /// The description, so that `localizedDescription`, which alerts show, says what happened too. It is in English.
    public var errorDescription: String? { description }
}
