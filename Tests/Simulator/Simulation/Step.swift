package import System

/// A step of a simulated run.
///
/// A list of steps repeats a run, whatever it was drawn from. A step that is no longer applicable because an earlier
/// one was removed does nothing.
///
/// The notation is the one in which a failing run prints its steps, such as
/// `create a, start a, write a, kill, @3 rename a b, rest`: the names of the cases below with a path if they have one,
/// and the words of ``Operation``. `start` is `settle, lease, begin`; `give` is that with `run, ok`; `new` is `create`
/// followed by `give`. `list` without a path is `poll` and the listing of the next eight directories. `!` before an
/// operation means that the kernel's queue overflows; `@3`, that the operation happens after three more inspections of
/// files by the program, possibly between two inspections of one comparison.
package enum Step: Sendable, Hashable, CustomStringConvertible {
    /// Another process changes files; with the prefix `!` the kernel's queue overflows.
    case world(Operation, isHintLost: Bool)
    /// Another process changes files after the given number of further inspections by the program.
    case race(Operation, inspections: Int)
    /// The watcher reads the events that are readable now, or all.
    case drain, read
    /// The watcher lists a directory (the next one for nil); polled directories become due.
    case list(PathBytes?), poll
    /// Time passes.
    case wait(milliseconds: Int)
    /// A turn of the engine, without or with leases.
    case turn, lease
    /// All hinted paths settle, and nothing is leased.
    case settle
    /// The action for the path starts; for nil, the one that was leased first.
    case begin(PathBytes?)
    /// The action has its effect on the files, or fails to have it.
    case run(PathBytes?), miss(PathBytes?)
    /// The action succeeds, fails and is retried, or fails permanently.
    case ok(PathBytes?), fail(PathBytes?), giveUp(PathBytes?)
    /// The program is killed, before or after the effects of running actions, and starts again.
    case kill, crash
    /// The program is killed; it starts again later.
    case halt, boot
    /// A hint without a change.
    case hint(PathBytes)
    /// The watcher lists everything again, as for `alight rescan`.
    case rescan
    /// `alight retry` for failed jobs; `alight pause` and `alight resume` for all rules.
    case retry, hold, release
    /// The rules are reloaded.
    case reload
    /// Everything happens that can without another change of the files; with `failing`, actions fail.
    case rest, failing

    /// The steps without a value.
    private static let plain: KeyValuePairs<String, Step> = [
        "drain": .drain, "read": .read, "poll": .poll, "turn": .turn, "lease": .lease, "settle": .settle, "kill": .kill,
        "crash": .crash, "halt": .halt, "boot": .boot, "rescan": .rescan, "retry": .retry, "hold": .hold,
        "release": .release, "reload": .reload, "rest": .rest, "failing": .failing,
    ]
    /// The steps for the action of a path, or for the first action.
    private static let ofAction: [String: @Sendable (PathBytes?) -> Step] = [
        "begin": { .begin($0) }, "run": { .run($0) }, "miss": { .miss($0) }, "ok": { .ok($0) }, "fail": { .fail($0) },
        "give-up": { .giveUp($0) },
    ]

    package var description: String {
        switch self {
        case .world(let operation, let isHintLost): (isHintLost ? "!" : "") + operation.description
        case .race(let operation, let inspections): "@\(inspections) \(operation)"
        case .list(let path): Self.text("list", path)
        case .wait(let milliseconds): "wait \(milliseconds)ms"
        case .begin(let path): Self.text("begin", path)
        case .run(let path): Self.text("run", path)
        case .miss(let path): Self.text("miss", path)
        case .ok(let path): Self.text("ok", path)
        case .fail(let path): Self.text("fail", path)
        case .giveUp(let path): Self.text("give-up", path)
        case .hint(let path): "hint \(path)"
        default: Self.plain.first { $0.value == self }?.key ?? ""
        }
    }

    private static func text(_ verb: String, _ path: PathBytes?) -> String { path.map { "\(verb) \($0)" } ?? verb }

    /// Parses the notation of one step.
    ///
    /// Returns nil if it is invalid.
    package static func read(_ text: Substring) -> [Step]? {
        let words = text.split(separator: " ").map(String.init)
        guard let verb = words.first else { return nil }
        let path: PathBytes? = words.count > 1 ? PathBytes(words[1]) : nil
        switch verb {
        case "list": return path.map { [.list($0)] } ?? [.poll] + Array(repeating: .list(nil), count: 8)
        case "wait": return words.last.flatMap { Int($0.dropLast(2)) }.map { [.wait(milliseconds: $0)] }
        case "hint": return path.map { [.hint($0)] }
        case "start": return [.settle, .lease, .begin(path)]
        case "give": return [.settle, .lease, .begin(path), .run(path), .ok(path)]
        case "new":
            return path.map {
                [.world(.create($0), isHintLost: false), .settle, .lease, .begin($0), .run($0), .ok($0)]
            }
        case _ where verb.hasPrefix("@"):
            guard let inspections = Int(verb.dropFirst()) else { return nil }
            return Operation(words.dropFirst().joined(separator: " ")).map { [.race($0, inspections: inspections)] }
        default:
            // `read` with a path is an operation; other steps ignore a path that names what they are for.
            let named = plain.first { $0.key == verb && (path == nil || $0.value != .read) }?.value
            if let step = ofAction[verb]?(path) ?? named { return [step] }
            let isHintLost = text.hasPrefix("!")
            return Operation(String(text.drop { $0 == "!" })).map { [.world($0, isHintLost: isHintLost)] }
        }
    }

    /// Parses steps separated by commas.
    package static func script(_ text: String) -> [Step] {
        text.split(separator: ",").flatMap { part -> [Step] in
            let part = part.drop { $0 == " " }
            guard let steps = read(part) else { preconditionFailure("no step: '\(part)'") }
            return steps
        }
    }
}
