package import ActionAPI
import Digests
import FileEvents
import Glibc
import PluginProtocol
package import Rules
import System

/// The `checksum` action: writes the checksum of a file to the list of its directory, or compares it with that.
///
/// Lists never get a checksum, so a rule that also matches them does not run indefinitely.
package struct ChecksumHandler: BlockingHandler {
    package init() {}

    package let summary = HandlerDescription(
        "checksum",
        [
            "algorithm": .choice(
                Checksum.allCases.map(\.rawValue),
                "The algorithm. b2 is BLAKE2b, as in b2sum; xxh128 is fast, but not cryptographic.",
                default: Checksum.sha256.rawValue),
            "write": .choice(["sums"], "Where to write it: to SHA256SUMS in the file's directory."),
            "verify": .choice(["sums"], "What to compare it with: SHA256SUMS in the file's directory."),
        ], examples: [["write": "sums"]], events: [.created, .modified, .moved, .attributes, .deleted],
        traits: .sharesFile)

    package func run(_ invocation: Invocation) -> Outcome { run([invocation])[0] }

    /// A change of a list of checksums.
    private struct ListChange {
        var list: ChecksumFile
        var sums: [ChecksumFile.Sum]
        /// The files that the change is for, as indices in the batch.
        var members: [Int] = []
    }

    /// Writes each list once, for all files in it.
    package func run(_ invocations: [Invocation]) -> [Outcome] {
        var lists: [PathBytes: ListChange] = [:]
        var outcomes = invocations.enumerated().map { index, invocation in
            Outcome.of { () throws(FileError) in
                let (outcome, change) = try result(of: invocation)
                if let change {
                    lists[change.list.path, default: ListChange(list: change.list, sums: [])].sums += change.sums
                    lists[change.list.path]?.members.append(index)
                }
                return outcome
            }
        }
        for change in lists.values {
            let update = Result { () throws(FileError) in
                try change.list.update(change.sums, within: invocations[change.members[0]].limit)
            }
            for index in change.members {
                switch update {
                case .success(true): outcomes[index].outputs = [change.list.path]
                case .success(false): outcomes[index].message += ", unchanged"
                case .failure(let error): outcomes[index] = error.outcome
                }
            }
        }
        return outcomes
    }

    /// Returns the outcome for one file, and the change of a list that must be written for it.
    private func result(of invocation: Invocation) throws(FileError) -> (Outcome, ListChange?) {
        let event = invocation.job.event
        let kind = invocation.text("algorithm").flatMap(Checksum.init(rawValue:)) ?? .sha256
        let (isWritten, isVerified) = (invocation.text("write") != nil, invocation.text("verify") != nil)
        guard !isWritten || !isVerified else {
            throw .failed("'write' and 'verify' can't be combined; use two actions", code: "bad-parameters")
        }
        if Checksum.isList(event.path) {
            return (Outcome(.skipped, "it is a checksum file itself", code: "checksums"), nil)
        }
        if event.kind == .deleted { return try removal(of: event, kind, isListed: isWritten) }
        let source = try SourceFile(invocation)
        let list = ChecksumFile(directory: source.directory, kind: kind)
        let sum = try kind.reading(of: source.openForReading(), event.path, within: invocation.limit)
        guard try source.isUnchanged() else { throw .changed }
        let values: [String: JSONValue] = [kind.rawValue: .string(sum)]
        if isVerified { return (try verify(source.name, sum, list, values), nil) }
        var outcome = Outcome(.succeeded, "\(kind.rawValue) \(sum)", values: values)
        guard isWritten else { return (outcome, nil) }
        try removeFormer(invocation, kind)
        outcome.message += " in \(list.path)"
        var sums: [ChecksumFile.Sum] = [(source.name, sum)]
        if let from = event.from, from.parent == event.path.parent, from != event.path {
            sums.append((Self.name(from), nil))
        }
        return (outcome, ListChange(list: list, sums: sums))
    }

    /// Removes a deleted file from the list of its directory.
    private func removal(
        of event: FileEvent, _ kind: Checksum, isListed: Bool
    ) throws(FileError) -> (Outcome, ListChange?) {
        guard isListed else { throw .gone }
        let list = ChecksumFile(directory: try SourceFile.openDirectory(of: event.path, root: event.root), kind: kind)
        let name = Self.name(event.path)
        guard try list.lines()?.sums[name] != nil else {
            return (Outcome(.skipped, "it is gone, and not in \(list.path)", code: "gone"), nil)
        }
        return (Outcome(.succeeded, "removed from \(list.path)"), ListChange(list: list, sums: [(name, nil)]))
    }

    /// Removes a file that was moved here from the list of its previous directory.
    private func removeFormer(_ invocation: Invocation, _ kind: Checksum) throws(FileError) {
        let event = invocation.job.event
        guard let from = event.from, from.parent != event.path.parent,
            let directory = try? SourceFile.openDirectory(of: from, root: event.root),
            case .absent = KernelFileSystem().stat(from)
        else { return }
        let former = ChecksumFile(directory: directory, kind: kind)
        guard try former.lines()?.sums[Self.name(from)] != nil else { return }
        _ = try former.update([(Self.name(from), nil)], within: invocation.limit)
    }

    private static func name(_ path: PathBytes) -> PathBytes { PathBytes(path.lastComponent) }

    private func verify(
        _ name: PathBytes, _ sum: String, _ list: ChecksumFile, _ values: [String: JSONValue]
    ) throws(FileError) -> Outcome {
        let kind = list.kind.rawValue
        guard let lines = try list.lines() else {
            // The list may arrive after the file.
            return Outcome(.retry, "there is no '\(list.path)' to compare with", code: "no-checksum")
        }
        guard let expected = lines.sums[name] else {
            return Outcome(.retry, "'\(list.path)' has no \(kind) of '\(name)'", code: "no-checksum")
        }
        guard expected == sum else {
            let message = "the \(kind) differs: it is \(sum), expected in '\(list.path)': \(expected)"
            return Outcome(.failed, message, code: "differs", values: values)
        }
        return Outcome(.succeeded, "\(kind) \(sum), as expected in '\(list.path)'", values: values)
    }
}

typealias Checksum = Digest.Algorithm

extension Checksum {
    /// The name of the file with the checksums of a directory.
    var listName: String { "\(rawValue.uppercased())SUMS" }
    /// The number of hexadecimal digits.
    var digits: Int {
        switch self {
        case .md5, .xxh128: 32
        case .sha1: 40
        case .sha256: 64
        case .sha512, .b2: 128
        }
    }

    /// Whether the name is that of a list of any kind.
    static func isList(_ path: PathBytes) -> Bool {
        allCases.contains { path.lastComponent.elementsEqual($0.listName.utf8) }
    }

    /// Reads an open file from start to end and returns the checksum in hexadecimal digits.
    func reading(of file: OpenFile, _ path: PathBytes, within limit: WorkLimit) throws(FileError) -> String {
        switch ContentDigest.reading(file, self, "reading", within: limit) {
        case .digest(let bytes): return String(hexadecimal: bytes)
        case .ended(let outcome): throw FileError(outcome)
        case .notRegular: throw .changed
        case .unreadable(ENOTSUP): throw FileError(ENOTSUP, "this system's libcrypto does not support \(rawValue)")
        case .unreadable(let errno): throw FileError(errno, "cannot read '\(path)'")
        }
    }
}
