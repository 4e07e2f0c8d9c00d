package import FileEvents
import Foundation
package import PluginProtocol
import Rules

extension PluginRequest {
    /// The request of one attempt.
    ///
    /// Texts in `with` that are not UTF-8, because a placeholder brought a name
    /// into them, become `{"base64": …}`.
    init(_ invocation: Invocation, scratch: PathBytes) {
        let job = invocation.job
        self.init(
            id: job.id.description, attempt: job.attempt, maxAttempts: invocation.maximumAttempts,
            interrupted: job.isInterrupted, deadline: invocation.facts.now.advanced(by: invocation.timeout).description,
            rule: RuleReference(name: job.rule, file: invocation.rulesFile.description, line: invocation.rule.line),
            with: invocation.parameters.json { Data($0).base64EncodedString() }, scratch: scratch.description,
            previous: job.previous, steps: invocation.steps.map(\.response), events: [PluginEvent(job.event)])
    }
}

extension Invocation {
    /// The absolute path of the rules file; a plugin means relative paths in its parameters from its folder.
    fileprivate var rulesFile: PathBytes { folder.appending(Array(PathBytes(rule.file).lastComponent)) }
}

extension PluginEvent {
    /// The event as plugins read it, and all others who read JSON.
    package init(_ event: FileEvent) {
        let snapshot = event.snapshot
        let relative = PathBytes(event.path.relative(to: event.root) ?? event.path.lastComponent)
        self.init(
            event: event.kind.rawValue, path: event.path.description, relative: relative.description,
            root: event.root.description, origin: event.origin.rawValue, type: snapshot.type.rawValue,
            size: Int64(clamping: snapshot.size), mtime: snapshot.modified.description,
            btime: snapshot.born?.description, mode: ExecutableCheck.octal(mode_t(snapshot.mode)),
            uid: Int(snapshot.uid), gid: Int(snapshot.gid), nlink: Int(snapshot.links),
            id: snapshot.identity.description, time: event.time.description)
        pathBase64 = event.path.base64
        relativeBase64 = relative.base64
        rootBase64 = event.root.base64
        from = event.from?.description
        fromBase64 = event.from?.base64
        changed = event.changed.isEmpty ? nil : event.changed
        replaced = event.isReplaced ? true : nil
    }
}

extension Outcome {
    /// The outcome as the request tells it to the steps that follow.
    fileprivate var response: PluginResponse {
        PluginResponse(
            ending, message: message.isEmpty ? nil : message, code: code,
            retryAfter: retryAfter.map { $0 / .seconds(1) },
            outputs: outputs.isEmpty ? nil : outputs.map { PluginPath(bytes: $0.bytes) },
            values: values.isEmpty ? nil : values)
    }
}

extension PathBytes {
    /// The bytes in base64, for names that are not UTF-8 alone.
    fileprivate var base64: String? { text == nil ? Data(bytes).base64EncodedString() : nil }
}
