import ActionAPI
import FileObserving
import Foundation
import Glibc
import PluginProtocol

/// Prints events as text or JSON lines on standard output, and messages about the watch on standard error.
struct EventPrinter: Sendable {
    let isJSON: Bool

    /// Writes one line.
    func write(_ event: FileEvent) -> Output.Written {
        Output.standard.write(isJSON ? Self.json(event) : Self.line(event, hasColor: Output.standard.hasColor))
    }

    static func json(_ event: FileEvent) -> String { PluginEvent(event).line }

    /// Formats an event: `11:24:03 modified /in/cat.jpg (extended), 41 bytes`.
    static func line(_ event: FileEvent, hasColor: Bool) -> String {
        let color =
            switch event.kind {
            case .created, .arriving: "32"
            case .modified: "33"
            case .deleted: "31"
            case .moved: "36"
            case .attributes: "35"
            default: "2"
            }
        let word = event.kind.rawValue.padding(toLength: 10, withPad: " ", startingAt: 0)
        var line = "\(Reporter.clock(event.time)) "
        line += hasColor ? "\u{1B}[\(color)m\(word)\u{1B}[0m " : "\(word) "
        if let from = event.from { line += "\(Display.path(from)) → " }
        line += Display.path(event.path)
        switch event.snapshot.type {
        case .directory where event.path.bytes != [.slash]: line += "/"
        case .symlink: line += " (symlink)"
        default: break
        }
        var details = event.changed.map { Display.text($0) }
        if event.isReplaced { details.append("replaced") }
        if event.isByMove { details.append("by a move") }
        if event.origin != .live, !event.kind.isLifecycle { details.append(event.origin.rawValue) }
        if !details.isEmpty { line += " (\(details.joined(separator: ", ")))" }
        if event.snapshot.type == .file, !event.kind.isLifecycle {
            line += ", \(Reporter.count(event.snapshot.size, "byte"))"
        }
        return line
    }

    // MARK: Standard error

    func say(_ error: ObservationError) { say("error", Display.text(error.description), help: error.help) }

    func say(_ notice: ObservationNotice) {
        switch notice {
        case .ready(let folders): say(nil, "ready: watching \(Reporter.count(folders, "directory"))")
        case .progress(let folders): if Output.error.hasColor { say(nil, "listing: \(folders) directories so far") }
        case .overflow:
            say("warning", "the kernel queue overflowed; rescanning all files (events may be late, none are lost)")
        case .rescanned: break
        case .rootMissing(let root): say(nil, "'\(Display.path(root))' does not exist; waiting for it")
        case .rootAppeared(let root): say(nil, "'\(Display.path(root))' exists now")
        case .unmounted(let folder):
            say(
                "warning",
                "the file system at '\(Display.path(folder))' was unmounted; its files are not reported as deleted")
        case .mounted(let folder): say(nil, "a file system was mounted at '\(Display.path(folder))'")
        case .polling(let folder, let fileSystem, let interval):
            let reason =
                fileSystem.map { "the kernel does not report all changes on \(Display.text($0))" }
                ?? "'--backend poll' is set"
            say(nil, "polling '\(Display.path(folder))' every \(Reporter.seconds(interval)): \(reason)")
        case .watchLimit(let sysctl, let limit, let needed, let polled):
            say(
                "warning",
                "\(sysctl) is \(limit), and \(Reporter.needed(needed)); \(Reporter.count(polled, "directory")) will be polled instead",
                help: "raise it: sysctl \(sysctl)=\(needed)")
        case .unreadable(let path, let errno):
            say("error", "cannot stat '\(Display.path(path))': \(String(cString: strerror(errno)))")
        case .stillWritten(let path, let duration):
            let minutes = duration.components.seconds / 60
            say("warning", "'\(Display.path(path))' has been open for writing for \(minutes) minutes; still waiting")
        case .failure(let error): say(error)
        }
    }

    /// Prints an error when events can no longer be written.
    func sayUnwritten(_ errno: Int32) {
        say(
            "error", "cannot write to standard output: \(String(cString: strerror(errno)))",
            help: "free space at its target, or redirect it elsewhere")
    }

    private func say(_ level: String?, _ message: String, help: String? = nil) {
        Output.error.write((level.map { "\($0): " } ?? "") + message + (help.map { "\n    help: \($0)" } ?? ""))
    }
}
