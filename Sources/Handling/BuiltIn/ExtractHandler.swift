import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
package import Rules

/// `extract`: unpacks an archive into a folder, which appears as a whole.
package struct ExtractHandler: Handler {
    package init() {}

    package let summary = HandlerDescription(
        reference: HandlerReference(name: "extract"),
        parameters: ParameterSchema(
            type: "object",
            properties: [
                "to": ParameterSchema(
                    type: "string", minLength: 1,
                    description:
                        "The folder to make, or with a slash at its end the folder in which one is made that is called like the archive. A relative path is meant from the folder of the rules file.",
                    role: ParameterSchema.destination),
                "on_conflict": Conflict.schema,
                "limits": ExtractLimits.schema,
            ], required: ["to"], additionalProperties: false),
        events: [.created, .modified, .moved, .attributes], types: [.file])

    package func run(_ invocation: Invocation) -> Outcome {
        if let problem = ArchiveFormat.problem { return Outcome(.failed, problem, code: "no-library") }
        do throws(FileFault) {
            return try extract(invocation)
        } catch {
            return error.outcome
        }
    }

    private func extract(_ invocation: Invocation) throws(FileFault) -> Outcome {
        let limits: ExtractLimits
        do throws(SizeProblem) {
            limits = try ExtractLimits(invocation.parameters["limits"])
        } catch {
            return Outcome(.failed, "'limits.size': \(error.message); \(error.help)", code: "bad-parameters")
        }
        let source = invocation.job.event.path
        var destination = try Destination(invocation)
        if invocation.parameters["to"]?.bytes?.last == .slash {
            let name = ArchiveFormat.stem(of: source.lastComponent)
            destination.path = destination.path.parent.appending(name)
        }
        let archive = source.withCString { open($0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        guard archive >= 0 else {
            if errno == ENOENT { return Outcome(.skipped, "it is gone", code: "gone") }
            throw FileFault(errno, "cannot open '\(source)'")
        }
        defer { close(archive) }
        guard let before = OpenFile.facts(archive), before.isRegular else {
            return Outcome(.failed, "'\(source)' is not a regular file", code: "not-a-file")
        }
        if destination.conflict == .skip, OpenFile.facts(destination.path, in: AT_FDCWD) != nil {
            return Outcome(.skipped, "'\(destination.path)' exists", code: "exists")
        }
        try destination.makeFolder()
        let staging = try StagingFolder(beside: destination.path)
        let stop = invocation.stop
        let deadline = ContinuousClock.now + invocation.timeout
        let extraction = Extraction(into: staging.descriptor, limits, packed: before.size, mask: staging.mask) {
            stop.isRaised || .now > deadline
        }
        do throws(Extraction.Refusal) {
            guard try extraction.run(archive) else {
                return stop.isRaised
                    ? .interrupted("stopped while unpacking") : .timedOut("the time-out ended the unpacking")
            }
        } catch {
            // What it then holds is no fault of the archive.
            if OpenFile.facts(archive) != before { return Self.changed }
            if let number = error.errno { throw FileFault(number, "\(error.message) of '\(source)'") }
            return Outcome(.failed, error.message, code: error.code)
        }
        guard OpenFile.facts(archive) == before else { return Self.changed }
        let values: [String: JSONValue] = [
            "entries": .integer(Int64(extraction.count)), "bytes": .integer(Int64(clamping: extraction.bytes)),
        ]
        if let done = earlierResult(destination, staging, invocation) {
            return Outcome(.succeeded, "an earlier attempt left it at \(done)", outputs: [done], values: values)
        }
        let error = cal_sync_file_system(staging.descriptor)
        guard error == 0 else { throw FileFault(error, "cannot flush '\(staging.path)'") }
        guard let path = try staging.publish(destination) else {
            return Outcome(.skipped, "'\(destination.path)' exists", code: "exists")
        }
        destination.syncFolder()
        let counted = extraction.count == 1 ? "1 entry" : "\(extraction.count) entries"
        return Outcome(.succeeded, "\(counted) unpacked into \(path)", outputs: [path], values: values)
    }

    private static let changed = Outcome(.notReady, "it changed while it was unpacked", code: "changed")

    /// Where an attempt has put the same files that could not say so any more.
    private func earlierResult(
        _ destination: Destination, _ staging: StagingFolder, _ invocation: Invocation
    ) -> PathBytes? {
        let job = invocation.job
        guard job.attempt > 1 || job.isInterrupted, destination.conflict == .rename else { return nil }
        for number in 0..<Destination.mostNumbers {
            let name = destination.numbered(number)
            guard OpenFile.facts(name, in: AT_FDCWD) != nil else { return nil }
            let folder = name.withCString { open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
            guard folder >= 0 else { continue }
            defer { close(folder) }
            if FolderTree.areSame(folder, staging.descriptor) { return name }
        }
        return nil
    }
}
