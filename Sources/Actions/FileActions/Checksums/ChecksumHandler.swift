package import ActionAPI
import FileEvents
import JSON
import PluginProtocol
package import Rules
import System

/// The `checksum` action: writes the checksum of a file to a sidecar or to the list of its directory, or verifies it.
///
/// Files that contain checksums never get one, so a rule that also matches them does not run indefinitely.
package struct ChecksumHandler: Handler {
    package init() {}

    package let summary = HandlerDescription(
        "checksum",
        [
            "algorithm": .choice(
                Checksum.allCases.map(\.rawValue),
                "The algorithm. b2 is BLAKE2b, as in b2sum; xxh128 is fast, but not cryptographic.",
                default: Checksum.sha256.rawValue),
            "write": .choice(
                ["sidecar", "sums"],
                "Where to write it: next to the file as NAME.sha256, or to SHA256SUMS in the file's directory."),
            "verify": .string(
                "The checksum to compare with: 'sidecar', 'sums', or the checksum itself in hexadecimal digits.",
                example: "sidecar"),
        ], examples: [["write": "sidecar"]], events: [.created, .modified, .moved, .attributes, .deleted],
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
            let update: Result<Bool, FileError>
            do throws(FileError) {
                update = .success(try Self.write(change.sums, to: change.list, invocations[change.members[0]].limit))
            } catch {
                update = .failure(error)
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

    /// Returns whether the file was written.
    private static func write(
        _ sums: [ChecksumFile.Sum], to file: ChecksumFile, isAlone: Bool = false, _ limit: WorkLimit
    ) throws(FileError) -> Bool {
        switch try file.update(sums, isAlone: isAlone, isOver: { limit.isOver }) {
        case .written: return true
        case .same: return false
        case .waited:
            if limit.stop.isRaised { throw FileError(.interrupted("stopped while waiting for the directory")) }
            throw FileError(.timedOut("the directory of '\(file.path)' was locked until the timeout"))
        }
    }

    /// Returns the outcome for one file, and the change of a list that must be written for it.
    private func result(of invocation: Invocation) throws(FileError) -> (Outcome, ListChange?) {
        let event = invocation.job.event
        let kind = invocation.text("algorithm").flatMap(Checksum.init(rawValue:)) ?? .sha256
        let write = invocation.text("write")
        let verify = invocation.text("verify")
        guard write == nil || verify == nil else {
            throw .failed("'write' and 'verify' can't be combined; use two actions", code: "bad-parameters")
        }
        if Checksum.isList(event.path) {
            return (Outcome(.skipped, "it is a checksum file itself", code: "checksums"), nil)
        }
        if event.kind == .deleted { return try removal(of: event, kind, isListed: write == "sums") }
        let source = try SourceFile(invocation)
        let list = ChecksumFile(listIn: source.directory, kind)
        let sidecar = ChecksumFile(
            directory: source.directory, name: PathBytes(source.name.bytes + Array(kind.suffix.utf8)), kind: kind)
        let limit = invocation.limit
        let sum = try kind.reading(of: source.openForReading(), event.path, within: limit)
        guard try source.isUnchanged() else { throw .changed }
        let values: [String: JSONValue] = [kind.rawValue: .string(sum)]
        if let verify { return (try self.verify(source.name, sum, kind, with: verify, list, sidecar, values), nil) }
        var outcome = Outcome(.succeeded, "\(kind.rawValue) \(sum)", values: values)
        switch write {
        case "sidecar":
            outcome.message += " in \(sidecar.path)"
            let previous = try content(of: sidecar, for: source.name)
            if previous == sum {
                outcome.message += ", unchanged"
                return (outcome, nil)
            }
            if let previous { outcome.message += ", replacing \(previous)" }
            if try Self.write([(source.name, sum)], to: sidecar, isAlone: true, limit) {
                outcome.outputs = [sidecar.path]
            } else {
                outcome.message += ", unchanged"
            }
            return (outcome, nil)
        case "sums":
            try removeFormer(invocation, kind)
            outcome.message += " in \(list.path)"
            var sums: [ChecksumFile.Sum] = [(source.name, sum)]
            if let from = event.from, from.parent == event.path.parent, from != event.path {
                sums.append((Self.name(from), nil))
            }
            return (outcome, ListChange(list: list, sums: sums))
        default: return (outcome, nil)
        }
    }

    /// Removes a deleted file from the list of its directory.
    private func removal(
        of event: FileEvent, _ kind: Checksum, isListed: Bool
    ) throws(FileError) -> (Outcome, ListChange?) {
        guard isListed else { throw .gone }
        let list = ChecksumFile(listIn: try SourceFile.openDirectory(of: event.path, root: event.root), kind)
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
        let former = ChecksumFile(listIn: directory, kind)
        guard try former.lines()?.sums[Self.name(from)] != nil else { return }
        _ = try former.update([(Self.name(from), nil)], isOver: { invocation.stop.isRaised })
    }

    private static func name(_ path: PathBytes) -> PathBytes { PathBytes(path.lastComponent) }

    /// Returns the checksum of a file in a sidecar, or a description of its other content; nil if there is no sidecar.
    private func content(of sidecar: ChecksumFile, for name: PathBytes) throws(FileError) -> String? {
        guard let lines = try sidecar.lines() else { return nil }
        return lines.only(for: name) ?? "content without a \(sidecar.kind.rawValue)"
    }

    // MARK: Verification

    private func verify(
        _ name: PathBytes, _ sum: String, _ kind: Checksum, with word: String, _ list: ChecksumFile,
        _ sidecar: ChecksumFile, _ values: [String: JSONValue]
    ) throws(FileError) -> Outcome {
        let expected: String
        var location = ""
        switch word {
        case "sidecar", "sums":
            let file = word == "sums" ? list : sidecar
            location = " in '\(file.path)'"
            guard let lines = try file.lines() else {
                // The checksum file may arrive after the file.
                return Outcome(.retry, "there is no '\(file.path)' to compare with", code: "no-checksum")
            }
            guard let found = word == "sums" ? lines.sums[name] : lines.only(for: name) else {
                let message = "'\(file.path)' has no \(kind.rawValue) of '\(name)'"
                return Outcome(.retry, message, code: "no-checksum")
            }
            expected = found
        default:
            guard let digits = ChecksumLines.digits(Array(word.utf8), kind) else {
                throw .failed(
                    "'verify' is '\(word)', which is not a \(kind.rawValue) of \(kind.digits) digits; write "
                        + "'sidecar', 'sums' or the checksum", code: "bad-parameters")
            }
            expected = digits
        }
        guard expected == sum else {
            let message = "the \(kind.rawValue) differs: it is \(sum), expected\(location): \(expected)"
            return Outcome(.failed, message, code: "differs", values: values)
        }
        return Outcome(.succeeded, "\(kind.rawValue) \(sum), as expected\(location)", values: values)
    }
}
