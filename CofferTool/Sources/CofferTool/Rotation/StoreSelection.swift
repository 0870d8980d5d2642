internal import ArgumentParser
internal import Coffer
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Which stores of those that are named a rotation is for.
struct StoreSelection: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Skip stores whose path or name matches this pattern, with * and ? as in a shell. Repeatable.",
            valueName: "pattern"))
    var exclude: [String] = []

    @Option(
        help: ArgumentHelp(
            "Skip stores with a younger data key: a number with d for days, h for hours, or w for weeks. See coffer audit.",
            valueName: "age"))
    var olderThan: Age?

    /// What was left out, and why.
    struct LeftOut {
        /// An earlier run of the same rotation has dealt with them.
        var doneBeforeCount = 0
        /// Their data keys are too young.
        var notDueCount = 0
    }

    /// Leaves out of `list` what the rotation is not for.
    ///
    /// - Parameter rotation: the one that is resumed; nil if none is.
    func apply(to list: inout StoreList, resuming rotation: ResumedRotation?) -> LeftOut {
        var leftOut = LeftOut()
        _ = list.keep(list.paths.filter { !isExcluded($0) })
        if let olderThan {
            let now = Date()
            leftOut.notDueCount = list.keep(list.paths.filter { Self.isOlder($0, than: olderThan, at: now) })
        }
        if let rotation { leftOut.doneBeforeCount = list.keep(list.paths.filter { !rotation.hasSettled($0) }) }
        return leftOut
    }

    private func isExcluded(_ path: String) -> Bool {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        return exclude.contains { pattern in
            unsafe fnmatch(pattern, path, 0) == 0 || fnmatch(pattern, name, 0) == 0
        }
    }

    /// Whether its data key is older, or not known: what is wrong with the store, its rotation says.
    private static func isOlder(_ path: String, than age: Age, at now: Date) -> Bool {
        guard let store = try? StorePath(path), let manager = try? Manager(directory: store.folder),
            let info = try? manager.storeInfo(named: store.databaseName)
        else { return true }
        return info.dataKeyAge(at: now).map { $0 > age.duration } ?? true
    }
}
