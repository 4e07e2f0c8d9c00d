import FileEvents
import Glibc
import Logging
import PluginProtocol
package import Rules

/// `archive`: packs a file, a folder, or all files of a batch into one archive.
package struct ArchiveHandler: Handler {
    package init() {}

    package let summary = HandlerDescription(
        reference: HandlerReference(name: "archive"),
        parameters: ParameterSchema(
            type: "object",
            properties: [
                "to": ParameterSchema(
                    type: "string", minLength: 1, pattern: "[^/]$",
                    description:
                        "The path of the archive. Folders are made. A relative path is meant from the folder of the rules file.",
                    role: ParameterSchema.destination),
                "format": ParameterSchema(
                    type: "string", enum: ArchiveFormat.allCases.map { .string($0.rawValue) },
                    description: "The kind of archive; as the end of 'to' says if it isn't given."),
                "name": ParameterSchema(
                    type: "string", minLength: 1,
                    description: "The file's path in the archive; that below the watched folder if it isn't given."),
                "on_conflict": Conflict.schema,
            ], required: ["to"], additionalProperties: false),
        events: [.created, .modified, .moved, .attributes], types: [.file, .directory])

    package func run(_ invocation: Invocation) -> Outcome { run([invocation])[0] }

    private struct Group {
        var destination: Destination
        var members: [(number: Int, name: PathBytes)] = []
    }

    /// Makes one archive of all that have the same destination.
    package func run(_ invocations: [Invocation]) -> [Outcome] {
        if let problem = ArchiveFormat.problem {
            return invocations.map { _ in Outcome(.failed, problem, code: "no-library") }
        }
        var outcomes: [Outcome?] = invocations.map { _ in nil }
        var groups: [PathBytes: Group] = [:]
        for (number, invocation) in invocations.enumerated() {
            do throws(FileFault) {
                let destination = try Destination(invocation)
                let name = try Self.name(of: invocation)
                groups[destination.path, default: Group(destination: destination)].members.append((number, name))
            } catch {
                outcomes[number] = error.outcome
            }
        }
        for var group in groups.values {
            group.members.sort { $0.name < $1.name }
            do throws(FileFault) {
                try pack(group, invocations, &outcomes)
            } catch {
                for member in group.members where outcomes[member.number] == nil {
                    outcomes[member.number] = error.outcome
                }
            }
        }
        return outcomes.map { $0 ?? Outcome(.failed, "it is not in the archive") }
    }

    /// The path in the archive: below it, whatever a placeholder brought.
    private static func name(of invocation: Invocation) throws(FileFault) -> PathBytes {
        let event = invocation.job.event
        let relative = Array(event.path.relative(to: event.root) ?? event.path.lastComponent)
        // A root that is packed itself has no path below itself.
        let usual = relative.isEmpty ? Array(event.path.lastComponent) : relative
        let wanted = invocation.parameters["name"]?.bytes ?? usual
        let parts = wanted.split(separator: .slash).filter { !$0.elementsEqual([.dot]) }
        guard !parts.isEmpty, !wanted.contains(0), !parts.contains(where: { $0.elementsEqual([.dot, .dot]) }) else {
            throw FileFault(EINVAL, "'\(PathBytes(wanted))' can't be a path in an archive")
        }
        return PathBytes(parts.joined(separator: [.slash]))
    }

    private func pack(_ group: Group, _ invocations: [Invocation], _ outcomes: inout [Outcome?]) throws(FileFault) {
        guard let first = group.members.first.map({ invocations[$0.number] }) else { return }
        func all(_ outcome: Outcome) {
            for member in group.members where outcomes[member.number] == nil { outcomes[member.number] = outcome }
        }
        let destination = group.destination
        let word = first.parameters.text("format")
        guard let format = word.flatMap(ArchiveFormat.init(rawValue:)) ?? ArchiveFormat(of: destination.path) else {
            let known = ArchiveFormat.allCases.map { ".\($0.rawValue)" }.joined(separator: ", ")
            let message =
                "'\(destination.path)' doesn't say which kind of archive it is; end it with \(known), or give 'format'"
            return all(Outcome(.failed, message, code: "bad-parameters"))
        }
        try destination.makeFolder()
        let temporary = FileCopy.temporaryName(beside: destination.path)
        let descriptor = temporary.withCString { open($0, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666) }
        guard descriptor >= 0 else { throw FileFault(errno, "cannot create '\(temporary)'") }
        defer {
            close(descriptor)
            temporary.withCString { _ = unlink($0) }
        }
        let stop = first.stop
        let deadline = ContinuousClock.now + first.timeout
        let writing = try ArchiveWriting(to: descriptor, destination.path, format) { stop.isRaised || .now > deadline }
        var packed: [Int] = []
        var former: PathBytes?
        for member in group.members {
            guard member.name != former else {
                let message = "two files would be '\(member.name)' in '\(destination.path)'; give each a 'name'"
                outcomes[member.number] = Outcome(.failed, message, code: "same-name")
                continue
            }
            switch try writing.add(invocations[member.number].job.event.path, as: member.name) {
            case .done:
                packed.append(member.number)
                former = member.name
            case .gone: outcomes[member.number] = Outcome(.skipped, "it is gone", code: "gone")
            case .changed: return all(Outcome(.notReady, "it changed while it was packed", code: "changed"))
            case .over:
                return all(
                    stop.isRaised
                        ? .interrupted("stopped while packing") : .timedOut("the time-out ended the packing"))
            }
        }
        guard !packed.isEmpty else { return }
        try writing.finish()
        for path in writing.leftOut {
            first.log.warning("'\(path)' is no file, folder or link, and not in the archive")
        }
        let counted = writing.files == 1 ? "1 file" : "\(writing.files) files"
        let values: [String: JSONValue] = [
            "files": .integer(Int64(writing.files)), "bytes": .integer(Int64(clamping: writing.bytes)),
        ]
        func succeed(_ message: String, _ path: PathBytes) {
            let outcome = Outcome(.succeeded, message, outputs: [path], values: values)
            for number in packed { outcomes[number] = outcome }
        }
        if let done = earlierResult(destination, temporary, first) {
            return succeed("an earlier attempt left it at \(done)", done)
        }
        guard fsync(descriptor) == 0 else { throw FileFault(errno, "cannot flush '\(temporary)'") }
        switch try destination.publish(temporary) {
        case .skipped: all(Outcome(.skipped, "'\(destination.path)' exists", code: "exists"))
        case .done(let path):
            destination.syncFolder()
            succeed("\(counted) packed into \(path)", path)
        }
    }

    /// What an attempt made that could not say so any more: the same files make the same archive.
    private func earlierResult(
        _ destination: Destination, _ temporary: PathBytes, _ invocation: Invocation
    ) -> PathBytes? {
        let job = invocation.job
        guard job.attempt > 1 || job.isInterrupted, destination.conflict == .rename else { return nil }
        for number in 0..<Destination.mostNumbers {
            let name = destination.numbered(number)
            guard OpenFile.facts(name, in: AT_FDCWD) != nil else { return nil }
            if OpenFile.haveSameContent(name, temporary) { return name }
        }
        return nil
    }
}
