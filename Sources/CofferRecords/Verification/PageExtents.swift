package import CofferSealing
package import CofferVault

/// Which pages of a database file lie in holes, which read as zeros: they aren't read, so that a sparse file of terabytes
/// takes as long as what is in it.
package struct PageExtents {
    package let fileSystem: any FileSystem
    package let file: File

    private static let pageByteCount = PageAuthenticator.pageByteCount

    /// The pages from `first` on, up to `last`, that are wholly in a hole, or those before the next that is.
    package func extent(from first: Int, through last: Int) throws(CofferError) -> (
        isHole: Bool, pages: ClosedRange<Int>
    ) {
        let offset = (first - 1) * Self.pageByteCount
        let found = try withoutDamage { () throws(CofferError) in
            (data: try fileSystem.data(of: file, from: offset), isKnown: true)
        }
        // A disk that doesn't say is asked for the bytes.
        guard let found else { return (false, first...last) }
        guard let data = found.data else { return (true, first...last) }
        let firstWithData = data.lowerBound / Self.pageByteCount + 1
        guard firstWithData <= first else { return (true, first...min(firstWithData - 1, last)) }
        return (false, first...min((data.upperBound - 1) / Self.pageByteCount + 1, last))
    }
}

/// Pages that lie in a hole and should not, one after the other.
package struct LostPages {
    package let pages: ClosedRange<Int>

    /// As many in a row are named one by one.
    package static let namedLimit = 16

    /// Of `pages`, those that `log` doesn't have: a copying that was cut short may not have come to them.
    package static func of(_ pages: ClosedRange<Int>, without log: LogVerification.Result, lockPage: Int) -> [LostPages]
    {
        let others = log.offsets.keys.map(Int.init).filter(pages.contains) + [lockPage].filter(pages.contains)
        var lost: [LostPages] = []
        var first = pages.lowerBound
        for other in others.sorted() {
            if first < other { lost.append(LostPages(pages: first...other - 1)) }
            first = max(first, other + 1)
        }
        if first <= pages.upperBound { lost.append(LostPages(pages: first...pages.upperBound)) }
        return lost
    }
}
