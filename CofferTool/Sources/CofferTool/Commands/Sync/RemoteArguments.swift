#if Sync
internal import ArgumentParser
internal import Coffer
internal import CofferSync
internal import Foundation

/// How one gets to a database on a server, and who one is there.
struct ConnectionArguments: ParsableArguments {
    @Option(help: ArgumentHelp("The user's name on the server.", valueName: "name"))
    var user: String?

    @Option(
        help: ArgumentHelp(
            "Where the server's password for --user comes from, as for --key; without it you are asked.",
            valueName: "source"))
    var password: String?

    @Flag(help: "Send name and password once and use a cookie, not with each request.")
    var session = false

    @Option(
        help: ArgumentHelp(
            "A header field for each request, such as \"X-Tenant: a\". Repeatable.", valueName: "field"))
    var header: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            A header field whose value is secret: its name, = and the source of its value, such as \
            Authorization=file:token. Repeatable.
            """, valueName: "name=source"))
    var secretHeader: [String] = []

    @Option(
        help: ArgumentHelp(
            "Certificates in PEM that may sign the server's, instead of those that the system trusts.",
            valueName: "file"),
        completion: .file())
    var trust: String?

    @Option(
        help: ArgumentHelp("Use this proxy. HTTPS_PROXY and similar variables are ignored.", valueName: "host:port"))
    var proxy: String?

    @Option(help: ArgumentHelp("The user's name on the proxy.", valueName: "name"))
    var proxyUser: String?

    @Option(
        help: ArgumentHelp(
            "Where the proxy's password for --proxy-user comes from, as for --key; without it you are asked.",
            valueName: "source"))
    var proxyPassword: String?

    @Flag(help: "Report progress on standard error, even if it is not a terminal.")
    var progress = false

    // MARK: What they say

    /// The place of the database, without a user. A password in it would stand in the process list.
    ///
    /// - Parameter url: of the database, as an argument says it.
    func place(_ url: String) throws(Failure) -> URL {
        guard var parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased(), parts.host != nil,
            ["http", "https"].contains(scheme)
        else {
            throw .usage("this is not the URL of a database", hint: "such as https://example.com/people")
        }
        guard parts.password == nil else {
            throw .usage("a password can't be an argument: others see it", hint: "--user NAME, and --password SOURCE")
        }
        parts.user = nil
        guard let place = parts.url else { throw .usage("this is not the URL of a database") }
        return place
    }

    private func userName(_ url: String) -> String? { user ?? URLComponents(string: url)?.user }

    /// What the arguments say that every replication knows. Asks for what has to be typed.
    func options(_ url: String, _ arguments: StoreArguments) throws(Failure) -> ReplicationOptions {
        let server = try place(url)
        var options = ReplicationOptions()
        options.headers = try openHeaders()
        options.trustedCertificates = try trust.map(Self.text(ofFile:))
        options.proxy = try proxy.map { (text) throws(Failure) in try Self.proxy(text) }
        let (passwordSource, proxySource, headerSources) = try sources(url, arguments)
        for (name, source) in headerSources { options.headers[name] = try source.text(for: name, "header field") }
        if let name = proxyUser, let proxySource {
            options.proxy?.user = name
            options.proxy?.password = try proxySource.text(
                for: "Password of \(Console.printable(name)) at the proxy", "password")
        }
        if let name = userName(url), let passwordSource {
            let purpose = "Password of \(Console.printable(name)) at \(server.host() ?? "the server")"
            let password = try passwordSource.text(for: purpose, "password")
            options.credentials =
                session ? .session(name: name, password: password) : .basic(name: name, password: password)
        }
        return options
    }

    /// Where the arguments say that secrets come from.
    func namedSources() throws(Failure) -> [KeySource] {
        let ofHeaders = secretHeader.compactMap { $0.split(separator: "=", maxSplits: 1).dropFirst().first }
        let all = [password, proxyPassword].compactMap(\.self) + ofHeaders.map(String.init)
        return try all.map { (text) throws(Failure) in try KeySource(text) }
    }

    /// Where secrets come from, which are not to be read from the same place as one another, nor as the key.
    private func sources(
        _ url: String, _ arguments: StoreArguments
    ) throws(Failure) -> (password: KeySource?, proxy: KeySource?, headers: [(String, KeySource)]) {
        guard proxy != nil || (proxyUser == nil && proxyPassword == nil), proxyUser != nil || proxyPassword == nil
        else {
            throw .usage("--proxy-password needs a --proxy-user, and that a --proxy")
        }
        let ofProxy = try proxyUser.map { (name) throws(Failure) in
            guard !name.isEmpty, !name.contains(":") else { throw .usage("--proxy-user is a name without a colon") }
            return try KeySource.ofPassword(proxyPassword, of: "--proxy-user", "--proxy-password")
        }
        var ofPassword: KeySource?
        if userName(url) != nil {
            ofPassword = try KeySource.ofPassword(password)
        } else if password != nil || session {
            throw .usage("--password and --session need a --user")
        }
        var ofHeaders: [(String, KeySource)] = []
        for text in secretHeader {
            let sides = text.split(separator: "=", maxSplits: 1).map(String.init)
            guard sides.count == 2, Self.isFieldName(sides[0]) else {
                throw .usage("this is not the name of a header field, = and a source")
            }
            ofHeaders.append((sides[0], try KeySource(sides[1], of: "--secret-header")))
        }
        let all = [try arguments.keySource(), ofPassword, ofProxy].compactMap(\.self) + ofHeaders.map(\.1)
        guard all.count(where: \.usesStandardInput) < 2 else { throw .usage("standard input cannot be two secrets") }
        return (ofPassword, ofProxy, ofHeaders)
    }

    private func openHeaders() throws(Failure) -> [String: String] {
        var headers: [String: String] = [:]
        for text in header {
            let sides = text.split(separator: ":", maxSplits: 1).map(String.init)
            guard sides.count == 2, Self.isFieldName(sides[0]) else {
                throw .usage("this is not a header field", hint: "--header \"Name: value\"")
            }
            guard !["authorization", "cookie", "proxy-authorization"].contains(sides[0].lowercased()) else {
                throw .usage(
                    "the value of \(sides[0]) is secret and can't be an argument",
                    hint: "--secret-header \(sides[0])=SOURCE, or --user NAME")
            }
            headers[sides[0]] = sides[1].trimmingPrefix(while: \.isWhitespace).description
        }
        return headers
    }

    private static func isFieldName(_ text: String) -> Bool {
        !text.isEmpty
            && text.unicodeScalars.allSatisfy {
                $0.isASCII && ($0.properties.isAlphabetic || "-_.0123456789".unicodeScalars.contains($0))
            }
    }

    private static func proxy(_ text: String) throws(Failure) -> ReplicationOptions.Proxy {
        let bare = text.hasPrefix("http://") ? String(text.dropFirst(7)) : text
        guard let colon = bare.lastIndex(of: ":"), let port = Int(bare[bare.index(after: colon)...]),
            (1...65_535).contains(port), colon > bare.startIndex, !bare.contains("@"), !bare.contains("/")
        else {
            throw .usage("--proxy is HOST:PORT")
        }
        return ReplicationOptions.Proxy(host: String(bare[..<colon]), port: port)
    }

    /// A file of text that is no secret.
    private static func text(ofFile path: String) throws(Failure) -> String {
        let contents = try InputFile.contents(of: path)
        guard let text = String(validating: contents, as: UTF8.self) else {
            throw .usage("\(path): no certificate in PEM")
        }
        return text
    }
}

extension KeySource {
    /// Where the password of a `--user` comes from: what `--password` says, or the terminal.
    static func ofPassword(
        _ text: String?, of user: String = "--user", _ option: String = "--password"
    ) throws(Failure) -> KeySource {
        if let text { return try KeySource(text, of: option) }
        guard Terminal.isPresent else {
            throw .usage("\(user) needs a password", hint: "\(option) SOURCE, as for --key")
        }
        return KeySource(origin: .prompt)
    }
}
#endif
