internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import CofferVault

extension Manager {
    /// Makes a database that is whole or absent: `fill` writes into one that nobody else sees, and that gets its name
    /// once it is closed and on the disk.
    ///
    /// - Parameters:
    ///   - name: see `openDatabase(named:options:)`.
    ///   - options: the key, and whether its attachments have keyed names. Other settings are chosen for bulk writing.
    ///   - fill: writes what the database should hold.
    /// - Throws: what `fill` and creating a database throw; `databaseExists` (412) if the name is taken, at the
    ///   beginning or at the end. Nothing is left then.
    package func makeDatabase<Value>(
        named name: String, options: DatabaseOptions, _ fill: (Database) throws -> Value
    ) throws -> Value {
        let name = try DatabaseName(name)
        let subject = Self.subject(name)
        try options.encryptionKey?.checkUsable()
        try makeDirectory()
        let hidden: HiddenStore
        do throws(CofferError) {
            hidden = try HiddenStore(beside: storePath(name), otherOwners: otherOwners, fileSystem: fileSystem)
        } catch {
            throw error.about(subject)
        }
        let database = try beginMaking(name, options, at: hidden.path)
        let value: Value
        do {
            value = try fill(database)
            try database.close()
        } catch {
            try? database.close()
            hidden.remove()
            throw error
        }
        try hidden.giveName()
        return value
    }

    private func beginMaking(
        _ name: DatabaseName, _ options: DatabaseOptions, at path: String
    ) throws(CofferError) -> Database {
        var options = options
        options.create = true
        options.readOnly = false
        options.compactsInBackground = false
        // The whole store is synced before it gets its name.
        options.durability = .relaxed
        let opener = StoreOpener(
            path: path, subject: Self.subject(name), options: options,
            newStorageType: { [self, options] () throws(CofferError) in try storageType(ofNewWith: options, name) },
            settings: StorageSettings(
                options, passwordCost: passwordCost, otherOwners: otherOwners, fileSystem: fileSystem,
                attachmentBatchCount: attachmentBatchCount, adjustDigest: adjustDigest),
            goesOn: { true })
        return Database(name: name.text, manager: self, storage: try opener.create())
    }
}
