import ActionAPI
import FileEvents
import PluginProtocol
import Rules
import System

/// The destinations of a plugin's runs: the parameters that its schema marks as paths of outputs, each of one file.
struct PluginDestinations {
    /// The handling of a destination at which the output of another file is.
    private enum Conflict: String, CaseIterable { case fail, skip, rename, overwrite }

    private static let conflictName = "on_conflict"

    /// Returns the parameters of a plugin's rules, which include `on_conflict` if the plugin has destinations and no
    /// such parameter itself.
    static func parameters(_ schema: ParameterSchema) -> ParameterSchema {
        guard !names(schema).isEmpty else { return schema }
        let conflict = ParameterSchema.choice(
            Conflict.allCases.map(\.rawValue),
            "What to do if the path has the result of another file: fail (default), skip, add a number to the name, "
                + "or overwrite.")
        return schema.adding([conflictName: conflict])
    }

    private static func names(_ schema: ParameterSchema) -> [String] {
        (schema.properties ?? [:]).filter { $0.value.role == ParameterSchema.destination }.keys.sorted()
    }

    private let names: [String]
    /// Whether the plugin has a parameter `on_conflict` of its own, which it evaluates itself.
    private let hasOwnConflict: Bool

    init(of plugin: PluginDescription) {
        names = plugin.parameters.map(Self.names) ?? []
        hasOwnConflict = plugin.parameters?.properties?[Self.conflictName] != nil
    }

    /// Claims the destinations of an invocation, whose parameters then contain the claimed paths.
    ///
    /// - Returns: Nil if the plugin may run; otherwise the outcome.
    func claim(_ invocation: inout Invocation) -> Outcome? {
        guard !names.isEmpty, !hasOwnConflict, case .object(var members) = invocation.parameters else { return nil }
        let conflict = members.removeValue(forKey: Self.conflictName)?.bytes
            .flatMap { Conflict(rawValue: String(decoding: $0, as: UTF8.self)) }
        invocation.parameters = .object(members)
        guard let claims = invocation.outputClaims else { return nil }
        for name in names {
            guard let written = members[name]?.bytes, !written.isEmpty, !written.contains(0) else { continue }
            var path = invocation.baseDirectory.resolving(written)
            if written.last == .slash { path = path.appending(invocation.job.event.path.lastComponent) }
            path = path.normalized
            do throws(Outcome) {
                let claimed = try claim(path, invocation.job, conflict ?? .fail, claims)
                if claimed != path { members[name] = .text(claimed.bytes) }
            } catch {
                claims.release(of: invocation.job, areMade: false)
                return error
            }
        }
        invocation.parameters = .object(members)
        return nil
    }

    private func claim(
        _ path: PathBytes, _ job: Job, _ conflict: Conflict, _ claims: any OutputClaims
    ) throws(Outcome) -> PathBytes {
        let replaceable: ReplaceableOutputs = conflict == .overwrite ? [.unknown, .others] : .unknown
        guard let refusal = claims.claim(path, for: job, replacing: replaceable) else { return path }
        if refusal.isRunning, conflict != .rename {
            let message = "'\(path)' is being made from '\(refusal.source ?? path)'"
            throw Outcome(.notReady, message, code: "exists")
        }
        let source = refusal.source.map { "'\($0)'" } ?? "another file"
        let message = "'\(path)' is the result of \(source)"
        switch conflict {
        case .skip: throw Outcome(.skipped, message, code: "exists")
        case .fail, .overwrite:
            let help =
                "make the path different for each file, for example with '${relative}', or set 'on_conflict'"
            throw Outcome(.failed, "\(message); \(help)", code: "exists")
        case .rename:
            let name = PathBytes(path.lastComponent)
            for number in 1..<NumberedName.most {
                let numbered = path.parent.appending(NumberedName.numbered(name, number).bytes)
                if claims.claim(numbered, for: job, replacing: []) == nil { return numbered }
            }
            throw Outcome(.failed, "there are \(NumberedName.most) files like '\(path)'", code: "exists")
        }
    }

    /// Releases the destinations of an invocation after its run.
    func release(_ invocation: Invocation, _ outcome: Outcome) {
        guard !names.isEmpty, !hasOwnConflict else { return }
        invocation.outputClaims?.release(of: invocation.job, areMade: outcome.result == .succeeded)
    }
}
