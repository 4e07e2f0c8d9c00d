package import FileEvents
import JSON
package import PluginProtocol
import Rules
package import System

extension PluginRequest {
    /// Creates the request of one attempt, for one event or for those of a batch.
    ///
    /// The members of a job are those of the first one. In a batch, the previous steps have a result for each event.
    /// Strings in `with` that are not UTF-8, because a placeholder has put a name into them, become `{"base64": …}`.
    package init(_ invocations: ArraySlice<Invocation>, scratch: PathBytes) {
        guard let invocation = invocations.first else { preconditionFailure("a request without an event") }
        let job = invocation.job
        let isBatch = invocation.batch != nil
        let steps = invocation.steps.enumerated().map { index, step in
            var response = step.response
            if isBatch { response.results = invocations.map { $0.steps[index].response } }
            return response
        }
        let events = invocations.map { invocation in
            var event = PluginEvent(invocation.job.event)
            if isBatch {
                event.job = invocation.job.id.description
                event.with = invocation.parameters.json
            }
            return event
        }
        // Absolute, since relative paths in a plugin's parameters are relative to its directory.
        let file = invocation.baseDirectory.appending(PathBytes(invocation.rule.file).lastComponent)
        // Only the part of the attempt that plugins receive.
        let previous = job.previous.map {
            PreviousAttempt(attempt: $0.attempt, outcome: $0.outcome, message: $0.message)
        }
        self.init(
            id: job.id.description, attempt: job.attempt, maxAttempts: invocation.maximumAttempts,
            interrupted: invocations.contains { $0.job.isInterrupted },
            deadline: invocation.now.advanced(by: invocation.timeout).description,
            rule: RuleReference(name: job.rule, file: file.description, line: invocation.rule.line),
            with: invocation.parameters.json, scratch: scratch.description, previous: previous, steps: steps,
            events: events)
    }
}

extension PluginEvent {
    /// Creates the event that programs receive.
    package init(_ event: FileEvent) {
        let snapshot = event.snapshot
        let relative = PathBytes(event.path.relative(to: event.root) ?? event.path.lastComponent)
        self.init(
            event: event.kind.rawValue, path: event.path.description, relative: relative.description,
            root: event.root.description, origin: event.origin.rawValue, type: snapshot.type.rawValue,
            size: Int64(clamping: snapshot.size), mtime: snapshot.modified.description,
            btime: snapshot.born?.description, mode: String(snapshot.mode, radix: 8, width: 4),
            uid: Int(snapshot.uid), gid: Int(snapshot.gid), nlink: Int(snapshot.links),
            id: snapshot.identity.description, time: event.time.description)
        pathBase64 = event.path.base64
        relativeBase64 = relative.base64
        rootBase64 = event.root.base64
        from = event.from?.description
        fromBase64 = event.from?.base64
        changed = event.changed.isEmpty ? nil : event.changed
        replaced = event.isReplaced ? true : nil
        sameAs = event.sameAs.isEmpty ? nil : event.sameAs.map { PluginPath(bytes: $0.bytes) }
        via = event.isByMove ? "move" : nil
        children = event.children
        before = event.before.map { PluginMetadata($0, since: snapshot) }
        by = event.writer.process.map(PluginWriter.init)
        tail = event.tail.map(PluginTail.init)
    }
}

extension PluginWriter {
    fileprivate init(_ process: WritingProcess) {
        self.init(
            pid: Int(process.pid), comm: process.name?.description, exe: process.executable?.description,
            uid: process.uid.map { Int($0) })
        commBase64 = process.name?.base64
        exeBase64 = process.executable?.base64
    }
}

extension PluginMetadata {
    /// Creates the previous metadata, with those extended attributes that differ now.
    fileprivate init(_ before: Snapshot, since after: Snapshot) {
        self.init(
            size: Int64(clamping: before.size), mtime: before.modified.description,
            mode: String(before.mode, radix: 8, width: 4), uid: Int(before.uid), gid: Int(before.gid),
            nlink: Int(before.links), id: before.identity.description)
        guard let old = before.extended, let new = after.extended, old != new else { return }
        let retained = Dictionary(old.map { ($0.name, $0.value) }) { first, _ in first }
        let differing = Set(old).symmetricDifference(new).map(\.name)
        xattr = Dictionary(differing.map { ($0.description, Self.json(retained[$0])) }) { first, _ in first }
    }

    private static let longestValue = 4096

    private static func json(_ value: [UInt8]?) -> JSONValue {
        guard let value else { return .null }
        guard value.count <= longestValue else { return ["size": .integer(Int64(value.count))] }
        return JSONValue(bytes: value)
    }
}

extension PluginTail {
    fileprivate init(_ tail: TailText) {
        self.init(
            offset: Int64(clamping: tail.offset), text: String(validating: tail.bytes, as: UTF8.self),
            base64: Base64.ofName(tail.bytes), reset: tail.isReset, remaining: Int64(clamping: tail.remaining))
    }
}

extension Outcome {
    /// The outcome, as the requests of the following steps contain it.
    fileprivate var response: PluginResponse {
        PluginResponse(
            result, message: message.isEmpty ? nil : message, code: code,
            retryAfter: retryAfter.map { $0 / .seconds(1) },
            outputs: outputs.isEmpty ? nil : outputs.map { PluginPath(bytes: $0.bytes) },
            values: values.isEmpty ? nil : values)
    }
}

extension PathBytes {
    /// The bytes in base64, only for names that are not UTF-8.
    fileprivate var base64: String? { Base64.ofName(bytes) }
}
