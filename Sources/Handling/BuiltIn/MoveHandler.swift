import FileEvents
import Glibc
import PluginProtocol
package import Rules
import Settling

/// `move`: gives the file another path; between file systems by a copy, and the source goes last.
package struct MoveHandler: Handler {
    package init() {}

    package let summary = HandlerDescription(
        reference: HandlerReference(name: "move"),
        parameters: ParameterSchema(
            type: "object", properties: ["to": Destination.toSchema, "on_conflict": Conflict.schema],
            required: ["to"], additionalProperties: false),
        events: [.created, .modified, .moved, .attributes])

    package func run(_ invocation: Invocation) -> Outcome {
        do throws(FileFault) {
            return try move(invocation)
        } catch {
            return error.outcome
        }
    }

    private func move(_ invocation: Invocation) throws(FileFault) -> Outcome {
        let source = invocation.job.event.path
        let destination = try Destination(invocation)
        guard !destination.isSame(as: source) else {
            return Outcome(.skipped, "it is there already", code: "same-path")
        }
        guard case .present = DiskProbe.look(at: source) else {
            return destination.earlierResult(invocation) ?? Outcome(.skipped, "it is gone", code: "gone")
        }
        try destination.makeFolder()
        do throws(FileFault) {
            return report(try destination.publish(source), destination)
        } catch {
            if error.errno == ENOENT, case .absent = DiskProbe.look(at: source) {
                return Outcome(.skipped, "it is gone", code: "gone")
            }
            guard error.errno == EXDEV else { throw error }
        }
        return try moveAcross(invocation, source, destination)
    }

    private func moveAcross(
        _ invocation: Invocation, _ source: PathBytes, _ destination: Destination
    ) throws(FileFault) -> Outcome {
        let copy = FileCopy(
            source: source, destination: destination.path, stop: invocation.stop, deadline: .now + invocation.timeout,
            keepsOwner: true)
        switch try copy.run() {
        case .gone: return Outcome(.skipped, "it is gone", code: "gone")
        case .notRegular:
            return Outcome(
                .failed, "'\(destination.path)' is on another file system, to which only regular files are moved",
                code: "cross-device")
        case .interrupted: return .interrupted("stopped while copying")
        case .timedOut: return .timedOut("the time-out ended the copy")
        case .changed: return Outcome(.notReady, "it changed while it was copied", code: "changed")
        case .copied(let temporary, let origin):
            defer { temporary.withCString { _ = unlink($0) } }
            let publication = try destination.publish(temporary)
            guard case .done(let path) = publication else { return report(publication, destination) }
            destination.syncFolder()
            // The copy is durable under its final name; only now may the source go.
            guard try remove(source, origin, copy: path) else {
                path.withCString { _ = unlink($0) }
                return Outcome(.notReady, "it changed while it was copied", code: "changed")
            }
            return report(publication, destination)
        }
    }

    /// Removes what was copied; false when another file or another content stands there by now.
    ///
    /// Flushing takes its time, and even between a look and a removal somebody
    /// could put a new file there. So it is taken away first, and looked at then.
    private func remove(_ source: PathBytes, _ origin: FileCopy.Origin, copy: PathBytes) throws(FileFault) -> Bool {
        let taken = FileCopy.temporaryName(beside: source)
        switch Destination.renameWithoutReplacing(source, taken) {
        case 0: break
        // Somebody took it away: the copy is the only one there is.
        case ENOENT: return true
        case let error: throw FileFault(error, "the copy stands at '\(copy)', but cannot remove '\(source)'")
        }
        if origin.isStill(at: taken) {
            guard taken.withCString({ unlink($0) }) == 0 else {
                throw FileFault(errno, "the copy stands at '\(copy)', but cannot remove '\(taken)'")
            }
            return true
        }
        // Back to its name, or beside it if there is yet another file.
        _ = try Destination(path: source, conflict: .rename).publish(taken)
        return false
    }

    private func report(_ publication: Destination.Publication, _ destination: Destination) -> Outcome {
        switch publication {
        case .skipped: Outcome(.skipped, "'\(destination.path)' exists", code: "exists")
        case .done(let path): Outcome(.succeeded, "moved to \(path)", outputs: [path])
        }
    }
}
