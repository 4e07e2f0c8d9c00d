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
        reference: HandlerReference(name: "checksum"),
        parameters: ParameterSchema(
            type: "object",
            properties: [
                "algorithm": ParameterSchema(
                    type: "string", enum: Checksum.allCases.map { .string($0.rawValue) },
                    default: .string(Checksum.sha256.rawValue),
                    description: "The algorithm. b2 is BLAKE2b, as in b2sum; xxh128 is fast, but not cryptographic."),
                "write": ParameterSchema(
                    type: "string", enum: ["sidecar", "sums"],
                    description:
                        "Where to write it: next to the file as NAME.sha256, or to SHA256SUMS in the file's "
                        + "directory."),
                "verify": ParameterSchema(
                    type: "string", examples: ["sidecar"], minLength: 1,
                    description:
                        "The checksum to compare with: 'sidecar', 'sums', or the checksum itself in "
                        + "hexadecimal digits."),
            ], additionalProperties: false, examples: [["write": "sidecar"]]),
        events: [.created, .modified, .moved, .attributes, .deleted], traits: .sharesFile)

    package func run(_ invocation: Invocation) -> Outcome { run([invocation])[0] }

    /// The result for one file.
    private enum Result {
        case outcome(Outcome)
        /// A change of a list, and the outcome once the list is written.
        case change(ChecksumFile, [(name: PathBytes, digits: String?)], Outcome)
    }

    /// Writes each list once, for all files in it.
    package func run(_ invocations: [Invocation]) -> [Outcome] {
        var outcomes: [Outcome?] = invocations.map { _ in nil }
        var lists: [PathBytes: (file: ChecksumFile, members: [Int], sums: [(name: PathBytes, digits: String?)])] = [:]
        var endings: [Int: Outcome] = [:]
        for (number, invocation) in invocations.enumerated() {
            do throws(FileError) {
                switch try result(of: invocation) {
                case .outcome(let outcome): outcomes[number] = outcome
                case .change(let file, let sums, let outcome):
                    endings[number] = outcome
                    lists[file.path, default: (file, [], [])].members.append(number)
                    lists[file.path]?.sums += sums
                }
            } catch {
                outcomes[number] = error.outcome
            }
        }
        for list in lists.values {
            guard let first = list.members.first else { continue }
            let update = update(list.file, list.sums, invocations[first])
            for number in list.members {
                switch update {
                case .failure(let stop): outcomes[number] = stop.outcome
                case .success(let isWritten):
                    var outcome = endings[number]
                    if isWritten { outcome?.outputs = [list.file.path] } else { outcome?.message += ", unchanged" }
                    outcomes[number] = outcome
                }
            }
        }
        return outcomes.map { outcome in
            guard let outcome else { preconditionFailure("each file has an outcome") }
            return outcome
        }
    }

    private struct Stop: Error { var outcome: Outcome }

    private func update(
        _ file: ChecksumFile, _ sums: [(name: PathBytes, digits: String?)], _ invocation: Invocation
    ) -> Swift.Result<Bool, Stop> {
        let limit = invocation.limit
        do throws(FileError) {
            switch try file.update(sums, isOver: { limit.isOver }) {
            case .written: return .success(true)
            case .same: return .success(false)
            case .waited:
                guard !limit.stop.isRaised else {
                    return .failure(Stop(outcome: .interrupted("stopped while waiting")))
                }
                let message = "the directory of '\(file.path)' was locked until the timeout"
                return .failure(Stop(outcome: .timedOut(message)))
            }
        } catch {
            return .failure(Stop(outcome: error.outcome))
        }
    }

    private func result(of invocation: Invocation) throws(FileError) -> Result {
        let event = invocation.job.event
        let path = event.path
        let kind = invocation.text("algorithm").flatMap(Checksum.init(rawValue:)) ?? .sha256
        let write = invocation.text("write")
        let verify = invocation.text("verify")
        guard write == nil || verify == nil else {
            return .outcome(
                Outcome(.failed, "'write' and 'verify' can't be combined; use two actions", code: "bad-parameters"))
        }
        if Checksum.isList(path) {
            return .outcome(Outcome(.skipped, "it is a checksum file itself", code: "checksums"))
        }
        if event.kind == .deleted { return try removal(of: path, root: event.root, kind, isListed: write == "sums") }
        let source = try SourceFile(invocation)
        if invocation.job.isInterrupted { Leftovers.clear(source.folder, now: DiskProbe.now()) }
        let list = ChecksumFile(folder: source.folder, name: PathBytes(kind.listName), kind: kind)
        let sidecar = ChecksumFile(
            folder: source.folder, name: PathBytes(source.name.bytes + Array(kind.suffix.utf8)), kind: kind)
        let limit = invocation.limit
        let sum = try kind.reading(of: source.openForReading(), path, within: limit)
        guard try source.isUnchanged() else { throw .changed }
        let values: [String: JSONValue] = [kind.rawValue: .string(sum)]
        if let verify { return .outcome(try self.verify(source.name, sum, kind, with: verify, list, sidecar, values)) }
        switch write {
        case "sidecar":
            let held = try held(by: sidecar, of: source.name)
            var outcome = Outcome(.succeeded, "\(kind.rawValue) \(sum) in \(sidecar.path)", values: values)
            if held == sum {
                outcome.message += ", unchanged"
                return .outcome(outcome)
            }
            if let held { outcome.message += ", replacing \(held)" }
            switch try sidecar.update(
                [(source.name, sum)], isAlone: true, isOver: { limit.isOver })
            {
            case .written: outcome.outputs = [sidecar.path]
            case .same: outcome.message += ", unchanged"
            case .waited: return .outcome(.interrupted("stopped while waiting for the directory"))
            }
            return .outcome(outcome)
        case "sums":
            try forget(invocation, in: kind)
            var sums: [(name: PathBytes, digits: String?)] = [(source.name, sum)]
            if let from = event.from, from.parent == path.parent, from != path { sums.append((Self.name(from), nil)) }
            return .change(list, sums, Outcome(.succeeded, "\(kind.rawValue) \(sum) in \(list.path)", values: values))
        default: return .outcome(Outcome(.succeeded, "\(kind.rawValue) \(sum)", values: values))
        }
    }

    /// Removes a deleted file from the list of its directory.
    private func removal(
        of path: PathBytes, root: PathBytes, _ kind: Checksum, isListed: Bool
    ) throws(FileError) -> Result {
        guard isListed else { throw .gone }
        let folder = try SourceFile.openFolder(of: path, root: root)
        let list = ChecksumFile(folder: folder, name: PathBytes(kind.listName), kind: kind)
        guard try list.lines()?.sums[Self.name(path)] != nil else {
            return .outcome(Outcome(.skipped, "it is gone, and not in \(list.path)", code: "gone"))
        }
        return .change(list, [(Self.name(path), nil)], Outcome(.succeeded, "removed from \(list.path)"))
    }

    /// Removes a file that was moved here from the list of its previous directory.
    private func forget(_ invocation: Invocation, in kind: Checksum) throws(FileError) {
        let event = invocation.job.event
        guard let from = event.from, from.parent != event.path.parent,
            let folder = try? SourceFile.openFolder(of: from, root: event.root),
            case .absent = DiskProbe.look(at: from)
        else { return }
        let former = ChecksumFile(folder: folder, name: PathBytes(kind.listName), kind: kind)
        guard try former.lines()?.sums[Self.name(from)] != nil else { return }
        let stop = invocation.stop
        _ = try former.update([(Self.name(from), nil)], isOver: { stop.isRaised })
    }

    private static func name(_ path: PathBytes) -> PathBytes { PathBytes(path.lastComponent) }

    /// Returns the checksum of a file in a sidecar, or a description of its other content; nil if there is no sidecar.
    private func held(by sidecar: ChecksumFile, of name: PathBytes) throws(FileError) -> String? {
        guard let lines = try sidecar.lines() else { return nil }
        let only = lines.sums.count == 1 ? lines.sums.values.first : nil
        return lines.sums[name] ?? lines.bare ?? only ?? "content without a \(sidecar.kind.rawValue)"
    }

    // MARK: Verification

    private func verify(
        _ name: PathBytes, _ sum: String, _ kind: Checksum, with word: String, _ list: ChecksumFile,
        _ sidecar: ChecksumFile, _ values: [String: JSONValue]
    ) throws(FileError) -> Outcome {
        let expected: String
        let place: String
        switch word {
        case "sidecar", "sums":
            let isList = word == "sums"
            let file = isList ? list : sidecar
            place = " in '\(file.path)'"
            guard let lines = try file.lines() else {
                // The checksum file may arrive after the file.
                return Outcome(.retry, "there is no '\(file.path)' to compare with", code: "no-checksum")
            }
            let only = lines.sums.count == 1 ? lines.sums.values.first : nil
            guard let found = lines.sums[name] ?? (isList ? nil : lines.bare ?? only) else {
                let message = "'\(file.path)' has no \(kind.rawValue) of '\(name)'"
                return Outcome(.retry, message, code: "no-checksum")
            }
            expected = found
        default:
            place = ""
            guard let digits = ChecksumLines.digits(Array(word.utf8), kind) else {
                let message =
                    "'verify' is '\(word)', which is not a \(kind.rawValue) of \(kind.digits) digits; write "
                    + "'sidecar', 'sums' or the checksum"
                return Outcome(.failed, message, code: "bad-parameters")
            }
            expected = digits
        }
        guard expected == sum else {
            let message = "the \(kind.rawValue) differs: it is \(sum), expected\(place): \(expected)"
            return Outcome(.failed, message, code: "differs", values: values)
        }
        return Outcome(.succeeded, "\(kind.rawValue) \(sum), as expected\(place)", values: values)
    }
}
