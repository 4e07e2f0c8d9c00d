import FileEvents
import Glibc
import PluginProtocol
package import Rules
import Settling

/// `copy`: puts a copy of the file somewhere, complete from its first moment.
///
/// The bytes go to a temporary name in the destination's folder, are flushed,
/// and get the final name then, so whoever watches there sees one whole file.
package struct CopyHandler: Handler {
    package init() {}

    package let summary = HandlerDescription(
        reference: HandlerReference(name: "copy"),
        parameters: ParameterSchema(
            type: "object", properties: ["to": Destination.toSchema, "on_conflict": Conflict.schema],
            required: ["to"], additionalProperties: false),
        events: [.created, .modified, .moved, .attributes], types: [.file])

    package func run(_ invocation: Invocation) -> Outcome {
        do throws(FileFault) {
            return try copy(invocation)
        } catch {
            return error.outcome
        }
    }

    private func copy(_ invocation: Invocation) throws(FileFault) -> Outcome {
        let source = invocation.job.event.path
        let destination = try Destination(invocation)
        try destination.makeFolder()
        guard !destination.isSame(as: source) else {
            return Outcome(.failed, "the file would be copied onto itself", code: "same-path")
        }
        if let done = destination.earlierResult(invocation) { return done }
        let copy = FileCopy(
            source: source, destination: destination.path, stop: invocation.stop, deadline: .now + invocation.timeout)
        switch try copy.run() {
        case .notRegular: return Outcome(.failed, "'\(source)' is not a regular file", code: "not-a-file")
        case .gone: return Outcome(.skipped, "it is gone", code: "gone")
        case .interrupted: return .interrupted("stopped while copying")
        case .timedOut: return Outcome(.retry, "the time-out ended the copy", code: "timed-out")
        case .changed: return Outcome(.notReady, "it changed while it was copied", code: "changed")
        case .copied(let temporary):
            defer { temporary.withCString { _ = unlink($0) } }
            switch try destination.publish(temporary) {
            case .skipped: return Outcome(.skipped, "'\(destination.path)' exists", code: "exists")
            case .done(let path):
                destination.syncFolder()
                return Outcome(.succeeded, "copied to \(path)", outputs: [path])
            }
        }
    }
}

extension Destination {
    /// The outcome of an attempt that did the work but could not say so, when it can be recognised.
    ///
    /// Otherwise a second attempt would leave a second, numbered copy.
    func earlierResult(_ invocation: Invocation) -> Outcome? {
        guard invocation.job.attempt > 1, conflict == .rename, case .present(let there) = DiskProbe.look(at: path),
            there.size == invocation.job.event.snapshot.size,
            there.modified == invocation.job.event.snapshot.modified, there.type == .file
        else { return nil }
        return Outcome(.succeeded, "an earlier attempt left it at \(path)", outputs: [path])
    }
}
