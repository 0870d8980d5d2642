import Coffer
import Testing

@Suite("The loaded libraries")
struct LoadedLibrariesTests {
    @Test("The loaded libraries say their versions, and that temporary data stays in memory")
    func versions() throws {
        let libraries = try LoadedLibraries()
        #expect(libraries.sqliteVersion.hasPrefix("3."))
        #expect(try #require(libraries.cipherVersion).first?.isNumber == true)
        #expect(libraries.keepsTemporaryDataInMemory)
        #expect(libraries.openSSLVersion.hasPrefix("OpenSSL 3"))
    }
}
