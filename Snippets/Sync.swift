// The samples of docs/SYNC.md and of README, with two databases and a listener over loopback: swift run --traits Sync Sync
import Coffer
import CofferSync
import Foundation

#if Sync
let folder = URL.temporaryDirectory.appending(path: "coffer-sync-\(UUID())")
let manager = try Manager(directory: folder.appending(path: "server"))
let key = try SymmetricKey()
let keys = ["people": key]
let people = try manager.database(named: "people", encryptionKey: key)
let robin = try people.document(withID: "Robin").newRevision()
robin["name"] = "Robin"
robin.setAttachment(named: "photo", contentType: "image/png", content: Data(count: 200_000))
try robin.save()

try await serve(manager, keys) { url in
    let client = try Manager(directory: folder.appending(path: "client"))
    let copy = try await client.database(named: "people", encryptionKey: key)
    try await leaveContents(on: url, copy)
    print(try copy["Robin"]?.properties?["name"]?.stringValue ?? "")        // Robin
    let kim = try copy.document(withID: "Kim").newRevision()
    kim["name"] = "Kim"
    try await kim.save()
    try await both(url, copy)
    print(try people["Kim"] != nil)                                         // true
}
try people.close()
try FileManager.default.removeItem(at: folder)

func both(_ url: URL, _ database: Database) async throws {
    // snippet.readme
    let pull = try Replication(pull: url, into: database)                   // https://robin:s3cret@example.com/people
    try await pull.run()                                                    // once, to its end
    let push = try Replication(push: database, to: url)
    try await push.run()
    // snippet.end
}

func pullAndPush(_ url: URL, _ database: Database) async throws {
    // snippet.pulling-and-pushing
    let pull = try Replication(pull: url, into: database)                   // https://robin:s3cret@example.com/people
    try await pull.run()                                                    // once, to its end

    var options = ReplicationOptions()
    options.isContinuous = true                                             // filter, documentIDs, channels, headers, …
    let push = try Replication(push: database, to: url, options: options)
    push.start()
    for await status in push.statuses {
        print(status.activity, status.completedCount, status.totalCount, status.error.map { "\($0)" } ?? "")
    }
    await push.stop()
    print(push.failures)                                                    // documents that were refused, and why
    print(try push.pendingDocumentIDs())                                    // changed since the last exchange
    print(try push.isDocumentPending("Robin"))                              // the same for one document
    // snippet.end
}

func mergeTags(_ options: inout ReplicationOptions) {
    // snippet.conflicts
    options.conflictHandler = { conflict in
        var merged = try conflict.theirs.properties                         // or return .ours, or .theirs
        merged["tags"] = try conflict.ours["tags"]
        return .merged(merged)
    }
    // snippet.end
}

func leaveContents(on url: URL, _ database: Database) async throws {
    // snippet.contents-on-demand
    var options = ReplicationOptions()
    options.downloadsAttachments = false                                    // or decide for each by its name, type, length, …:
    options.shouldDownloadAttachment = { info in (info.length ?? .max) < 100_000 }
    let pull = try Replication(pull: url, into: database, options: options)
    try await pull.run()

    guard let photo = try database["Robin"]?.currentRevision?.attachment(named: "photo") else { return }
    print(photo.contentAvailable)                                           // false; photo.content is nil
    let download = try pull.download(photo)                                 // or a blob; begins at once
    for await status in download.statuses { print(status.completedByteCount, status.totalByteCount) }
    try await download.run()                                                // the content is here: verified, and on the disk

    try await pull.purge(photo)                                             // away again, once the server has shown that it has it
    // snippet.end
}

func serve(_ manager: Manager, _ keys: [String: SymmetricKey], _ use: (URL) async throws -> Void) async throws {
    // snippet.serving
    var options = ListenerOptions(access: .passwords(["robin": "s3cret"]))
    options.encryptionKey = { name in keys[name] }                          // of databases that are opened or created
    let listener = try await Listener(manager, options: options)            // on loopback, unless options.host says otherwise
    let address = try listener.url(ofDatabaseNamed: "people")               // what a Replication takes
    // curl -u robin:s3cret http://127.0.0.1:49152/people/_changes
    // snippet.end
    var components = URLComponents(url: address, resolvingAgainstBaseURL: false)
    components?.user = "robin"
    components?.password = "s3cret"
    try await use(components?.url ?? address)
    await listener.stop()
}

func useTLS(_ options: inout ListenerOptions, pem: String, keyPEM: String) {
    // snippet.tls-and-proxies
    options.tls = ListenerOptions.TLS(certificateChain: pem, privateKey: keyPEM)    // serves https only
    // snippet.end
}

func trust(_ authorityPEM: String, _ options: inout ReplicationOptions) {
    // snippet.trust
    options.trustedCertificates = authorityPEM                              // instead of those that the system trusts
    // snippet.end
}
#else
print("This uses the network: swift run --traits Sync Sync")
#endif
