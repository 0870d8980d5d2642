import Foundation
import Testing

/// What published vectors need of libraries that every system has, found at run time.
enum SystemLibraries {
    private typealias Uncompress =
        @convention(c) (UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<UInt>, UnsafePointer<UInt8>, UInt) -> Int32
    private typealias SHA512 =
        @convention(c) (UnsafePointer<UInt8>, Int, UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8>?
    private typealias Algorithm = @convention(c) () -> OpaquePointer?
    private typealias HMAC =
        @convention(c) (
            OpaquePointer?, UnsafePointer<UInt8>, Int32, UnsafePointer<UInt8>, Int, UnsafeMutablePointer<UInt8>,
            UnsafeMutablePointer<UInt32>?
        ) -> UnsafeMutablePointer<UInt8>?

    private static func function<Function>(_ name: String, in libraries: [String?], as type: Function.Type) -> Function?
    {
        for library in libraries {
            guard let handle = dlopen(library, RTLD_NOW), let symbol = dlsym(handle, name) else { continue }
            return unsafeBitCast(symbol, to: type)
        }
        return nil
    }

    private static let uncompress = function("uncompress", in: ["libz.so.1", "libz.dylib"], as: Uncompress.self)
    // CofferSealing has loaded libcrypto.
    private static let sha512 = function("SHA512", in: [nil], as: SHA512.self)
    private static let sha512Algorithm = function("EVP_sha512", in: [nil], as: Algorithm.self)
    private static let hmac = function("HMAC", in: [nil], as: HMAC.self)

    private typealias NewContext = @convention(c) () -> OpaquePointer?
    private typealias FreeContext = @convention(c) (OpaquePointer?) -> Void
    private typealias Start = @convention(c) (OpaquePointer?, OpaquePointer?, OpaquePointer?) -> Int32
    private typealias Update = @convention(c) (OpaquePointer?, UnsafePointer<UInt8>, Int) -> Int32
    private typealias Finish = @convention(c) (OpaquePointer?, UnsafeMutablePointer<UInt8>, Int) -> Int32
    private static let newContext = function("EVP_MD_CTX_new", in: [nil], as: NewContext.self)
    private static let freeContext = function("EVP_MD_CTX_free", in: [nil], as: FreeContext.self)
    private static let shake128Algorithm = function("EVP_shake128", in: [nil], as: Algorithm.self)
    private static let start = function("EVP_DigestInit_ex", in: [nil], as: Start.self)
    private static let update = function("EVP_DigestUpdate", in: [nil], as: Update.self)
    private static let finish = function("EVP_DigestFinalXOF", in: [nil], as: Finish.self)

    static var canInflate: Bool { uncompress != nil }

    /// Decompresses the zlib format, RFC 1950, to at most 8 MiB.
    static func inflate(_ bytes: [UInt8]) throws -> [UInt8] {
        let uncompress = try #require(uncompress)
        var byteCount = UInt(8 << 20)
        let result = [UInt8](unsafeUninitializedCapacity: 8 << 20) { buffer, count in
            guard let start = buffer.baseAddress, uncompress(start, &byteCount, bytes, UInt(bytes.count)) == 0 else {
                return
            }
            count = Int(byteCount)
        }
        try #require(byteCount == result.count, "zlib can't decompress it")
        return result
    }

    static func sha512(_ bytes: [UInt8]) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: 64)
        guard let sha512, sha512(bytes, bytes.count, &digest) != nil else { return nil }
        return digest
    }

    static func hmacSHA512(_ message: [UInt8], key: [UInt8]) -> [UInt8]? {
        var code = [UInt8](repeating: 0, count: 64)
        guard let hmac, let algorithm = sha512Algorithm?(),
            hmac(algorithm, key, Int32(key.count), message, message.count, &code, nil) != nil
        else { return nil }
        return code
    }

    /// SHAKE-128, FIPS 202.
    static func shake128(_ message: [UInt8], byteCount: Int) throws -> [UInt8] {
        var output = [UInt8](repeating: 0, count: byteCount)
        guard let newContext, let freeContext, let algorithm = shake128Algorithm?(), let start, let update, let finish
        else { throw CocoaError(.featureUnsupported) }
        let context = newContext()
        defer { freeContext(context) }
        let isDone =
            start(context, algorithm, nil) == 1 && update(context, message, message.count) == 1
            && finish(context, &output, byteCount) == 1
        try #require(isDone)
        return output
    }
}
