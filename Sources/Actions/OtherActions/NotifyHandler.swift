package import ActionAPI
import FileEvents
import Logging
import PluginProtocol
package import Programs
package import Rules
package import System

/// The `notify` action: shows a desktop notification with `notify-send`.
package struct NotifyHandler: Handler {
    private let launcher: ProcessLauncher
    private let environment: ProgramEnvironment
    private let bus: String?
    private let find: @Sendable (String) -> PathBytes?

    /// - Parameters:
    ///   - launcher: The launcher that runs `notify-send`.
    ///   - environment: The environment that `notify-send` receives.
    ///   - bus: The address of the session bus; nil if there is no session.
    ///   - find: Returns the path of a program.
    package init(
        launcher: ProcessLauncher, environment: ProgramEnvironment, bus: String?,
        find: @escaping @Sendable (String) -> PathBytes? = { ExecutableCheck.find($0) }
    ) {
        (self.launcher, self.environment, self.bus, self.find) = (launcher, environment, bus, find)
    }

    package let summary = HandlerDescription(
        "notify",
        [
            "title": .string("The title. Default: the name of the rule.", example: "New file"),
            "body": .string(
                "The text. Default: the event and the path.", example: "${name}, ${size} bytes", minLength: nil),
            "urgency": .choice(["low", "normal", "critical"], "The urgency.", default: "normal"),
            "icon": .string("The name of an icon, or the path of an image.", example: "document-new"),
        ], events: nil)

    package func perform(_ invocations: [Invocation]) async -> [Outcome] {
        var outcomes: [Outcome] = []
        for invocation in invocations {
            outcomes.append(invocation.stop.isRaised ? .interrupted("Alight stops") : await show(invocation))
        }
        return outcomes
    }

    private func show(_ invocation: Invocation) async -> Outcome {
        guard let bus else {
            return Outcome(
                .failed,
                "there is no desktop session: neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR leads to "
                    + "one; run Alight as a service of the user's session, or use 'webhook'",
                code: "no-desktop")
        }
        guard let program = find("notify-send") else {
            let message = "'notify-send' is missing; install the package libnotify-bin"
            return Outcome(.failed, message, code: "no-program")
        }
        if environment.isRoot, let problem = OwnershipCheck.problem(running: program) {
            return Outcome(.failed, problem.message, code: Outcome.cannotStartCode)
        }
        let event = invocation.job.event
        let title = invocation.text("title") ?? invocation.job.rule
        let body = invocation.text("body") ?? "\(event.kind.rawValue) \(event.path)"
        let urgency = invocation.text("urgency") ?? "normal"
        var arguments = ["--app-name=Alight", "--urgency=\(urgency)"].map { Array($0.utf8) }
        if let icon = invocation.parameters["icon"]?.bytes { arguments.append(Array("--icon=".utf8) + icon) }
        arguments += [Array("--".utf8), Array(String(cleaning: title.utf8).utf8), Self.plain(body)]
        let command = Command(
            executable: program, arguments: arguments,
            environment: environment.variables + [("DBUS_SESSION_BUS_ADDRESS", Array(bus.utf8))], output: .reported,
            timeout: min(invocation.timeout, .seconds(30)))
        let log = invocation.log
        let report: @Sendable (ArraySlice<UInt8>) -> Void = { line in
            if case .line(_, let text) = ProgramReport(line: line) { log.debug("notify-send: \(text)") }
        }
        let ended = await launcher.run(command, stop: invocation.stop, report: report)
        switch ended.termination {
        case .exited(0): return Outcome(.succeeded, "shown: \(title)")
        case .exited(let status):
            let reason = ended.lastLine ?? "it exited with status \(status)"
            return Outcome(.retry, "'notify-send' could not show it: \(reason)", code: "not-shown")
        case .signalled(let number):
            return Outcome(.retry, "'notify-send' was killed by signal \(number)", code: "not-shown")
        case .timedOut: return .timedOut("'notify-send' did not exit in time; does the desktop show notifications?")
        case .stopped: return .interrupted("stopped while showing it")
        case .outputTooLarge: return Outcome(.retry, "'notify-send' printed too much output", code: "not-shown")
        case .couldNotStart(let reason):
            return Outcome(.failed, "'notify-send' can't be run: \(reason)", code: Outcome.cannotStartCode)
        case .notLaunched(let reason):
            return Outcome(.retry, "'notify-send' was not started: \(reason)", code: "not-launched")
        }
    }

    /// Escapes the string, since the desktop would interpret it as markup, which a file name may resemble.
    private static func plain(_ text: String) -> [UInt8] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let cleaned = lines.map { String(cleaning: $0.utf8) }.joined(separator: "\n")
        return cleaned.utf8.flatMap { escapes[$0] ?? [$0] }
    }

    /// The replacements of markup, and of the backslash, which notify-send interprets as C does.
    private static let escapes: [UInt8: [UInt8]] = [
        UInt8(ascii: "&"): Array("&amp;".utf8), UInt8(ascii: "<"): Array("&lt;".utf8),
        UInt8(ascii: ">"): Array("&gt;".utf8), UInt8(ascii: "\\"): Array("\\\\".utf8),
    ]
}
