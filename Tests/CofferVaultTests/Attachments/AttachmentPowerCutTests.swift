import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

/// What may be on the disk after a power cut, of the files and names that a log speaks of.
///
/// The weakest file system there is: content is whole only after a sync of its file, and of the changes of a directory since
/// its last sync any may have arrived without the others; also a name may go without being there under the other one yet.
private struct WeakDisk {
    typealias Names = [DiskOperation.Place: Int]

    /// Each a change of names that arrives or doesn't.
    private var pending: [(directory: Int, change: (inout Names) -> Void)] = []
    private var durable: Names = [:]
    private var wholeFiles: Set<Int> = []
    private var contents: [Int: [UInt8]] = [:]
    /// What files that are lists announce: asked for in each of thousands of outcomes, and read once.
    private var lists: [Int: [String]] = [:]
    /// Where a name leads as the running process sees it.
    private var names: Names = [:]

    mutating func apply(_ operation: DiskOperation) {
        switch operation {
        case .createFile(let place, let made):
            change(place.directory) { $0[place] = made }
            contents[made] = []
        case .write(let bytes, let file):
            wholeFiles.remove(file)
            lists[file] = nil
            contents[file, default: []] += bytes
        case .synchronizeFile(let file): wholeFiles.insert(file)
        case .synchronizeDirectory(let directory): settle { $0 == directory }
        case .synchronizeFileSystem:
            settle { _ in true }
            wholeFiles.formUnion(contents.keys)
        case .rename(let place, let newPlace):
            let file = names[place]
            change(newPlace.directory) { $0[newPlace] = file }
            change(place.directory) { $0[place] = nil }
        case .unlink(let place): change(place.directory) { $0[place] = nil }
        case .setPermissions, .setOwner: break
        default: Issue.record("saving attachments doesn't need \(operation)")
        }
    }

    private mutating func change(_ directory: Int, _ change: @escaping (inout Names) -> Void) {
        change(&names)
        pending.append((directory, change))
    }

    private mutating func settle(_ isSettled: (Int) -> Bool) {
        for one in pending where isSettled(one.directory) { one.change(&durable) }
        pending.removeAll { isSettled($0.directory) }
    }

    /// Each outcome of a cut now, or `sampleCount` of them where there are too many.
    func outcomes(sampleCount: Int) -> [Names] {
        let count = pending.count
        let choices =
            count <= 8
            ? Array(0..<UInt64(1) << count)
            : [0, .max] + (0..<sampleCount).map { _ in UInt64.random(in: 0 ... .max) }
        return choices.map { choice in
            var names = durable
            for (index, one) in pending.enumerated() where choice >> UInt64(index) & 1 == 1 { one.change(&names) }
            return names
        }
    }

    func isWhole(_ file: Int) -> Bool { wholeFiles.contains(file) }

    /// What the file called `name` announces.
    mutating func announced(by name: String, _ file: Int) throws -> [String] {
        if name.contains(".blob.") { return [String(name.dropLast(17))] }
        guard name.hasSuffix(".list"), isWhole(file) else { return [] }
        if let read = lists[file] { return read }
        let bytes = contents[file] ?? []
        let announced =
            try InstallIntentList.attachments(in: bytes, .sha1) ?? InstallIntentList.attachments(in: bytes, .keyed)
            ?? []
        lists[file] = announced
        return announced
    }
}

/// Cuts the power after each step of `log`, in every way, and lets recovery judge by the names that are announced.
struct PowerCutCheck {
    let log: [DiskOperation]
    /// The step from which on rows are there, if they are at all.
    let commit: Int?
    /// The names of those that have rows then.
    let rows: Set<String>
    var sampleCount = 200

    /// Returns how many outcomes there were.
    func run(_ comment: Comment) throws -> Int {
        let places = log.compactMap { operation in
            switch operation {
            case .rename(_, let place), .createFile(let place, _): place
            default: nil
            }
        }
        guard let attachments = places.first(where: { $0.name.hasSuffix(".blob") })?.directory else { return 0 }
        var disk = WeakDisk()
        var outcomes = 0
        for step in 0...log.count {
            if step > 0 { disk.apply(log[step - 1]) }
            for names in disk.outcomes(sampleCount: sampleCount) {
                outcomes += 1
                let announced = try Set(
                    names.filter { $0.key.directory != attachments }
                        .flatMap { try disk.announced(by: $0.key.name, $0.value) })
                // At the moment of the commit, it may have been made or not.
                for isCommitted in commit.map({ step < $0 ? [false] : step == $0 ? [false, true] : [true] }) ?? [false]
                {
                    let left = names.filter {
                        $0.key.directory == attachments && (isCommitted || !announced.contains($0.key.name))
                    }
                    #expect(Set(left.keys.map(\.name)) == (isCommitted ? rows : []), "\(comment), step \(step)")
                    #expect(left.values.allSatisfy { disk.isWhole($0) }, "\(comment), step \(step)")
                }
            }
        }
        return outcomes
    }
}

@Suite("A power cut while attachments are saved")
struct AttachmentPowerCutTests {
    /// Runs the transaction with `fault`, and returns the log and where in it the commit was.
    private func log(
        _ transaction: AttachmentTransaction, _ fault: Fault? = nil, reportsFailedWrites: Bool? = nil
    ) throws -> PowerCutCheck {
        let scratch = Scratch.inMemory
        try transaction.prepare(scratch.store)
        let recording = RecordingFileSystem(fault, reportsFailedWrites: reportsFailedWrites)
        _ = code { try transaction.run(scratch.store, recording) }
        let rows = try AttachmentTransaction.rows(of: scratch.store).dropFirst().map(\.name)
        let log = recording.log
        let sync = log.lastIndex { if case .synchronizeDirectory = $0 { true } else { false } }
        return PowerCutCheck(log: log, commit: rows.isEmpty ? nil : try #require(sync) + 1, rows: Set(rows))
    }

    @Test(
        "A power cut while attachments are saved leaves each with a row and its whole content or with neither",
        arguments: [true, false], [1, 2, 8])
    func committing(isEncrypted: Bool, count: Int) throws {
        for reports in [true, false] {
            let transaction = AttachmentTransaction(isEncrypted: isEncrypted, count: count)
            let check = try log(transaction, reportsFailedWrites: reports)
            let outcomes = try check.run("\(transaction)")
            #expect(check.commit != nil && outcomes > check.log.count)
            print("\(transaction): \(outcomes) outcomes of a power cut at \(check.log.count + 1) moments")
        }
    }

    @Test(
        "A power cut while attachments are rolled back leaves none of them, also when a step failed before",
        arguments: [1, 2, 8])
    func rollingBack(count: Int) throws {
        let transaction = AttachmentTransaction(count: count, ending: .rollBack)
        let check = try log(transaction)
        #expect(check.commit == nil)
        #expect(try check.run("\(transaction)") > check.log.count)
        for number in 1...check.log.count {
            for fault in [Fault.fail(number, EIO), .failAfter(number, EIO)] {
                var check = try log(transaction, fault)
                check.sampleCount = 10
                _ = try check.run("\(fault)")
            }
        }
    }
}
