internal import CofferSealing

extension Array {
    /// Those that pass a filter of the app's.
    ///
    /// - Throws: what the filter throws, as `rejected` (403) of `subject` unless it is Coffer's.
    func passing(_ filter: (Element) throws -> Bool, of subject: String) throws(CofferError) -> [Element] {
        do {
            return try self.filter(filter)
        } catch let error as CofferError {
            throw error
        } catch {
            throw CofferError(.rejected, of: subject, "the filter failed", cause: error)
        }
    }
}
