import FileEvents
import Globbing
import Rules
import Settling
import Synchronization

extension Rule {
    /// A rule as loading would make it, settling quickly.
    static func sample(
        _ name: String, _ globs: [PathBytes], events: EventMask = [.created, .modified],
        settle: Duration = .milliseconds(30), actions: [String] = ["act"], isProgram: Bool = false,
        concurrency: Int = 1, retry: RetryPolicy = RetryPolicy(), timeout: Duration = .seconds(60)
    ) -> Rule {
        let place = SourcePlace(file: "rules.yaml", line: 1, column: 1)
        return Rule(
            name: name, place: place, filter: PathFilter(globs: globs.compactMap { try? Glob($0.bytes) }),
            events: events, settle: SettlePolicy(quiet: settle),
            actions: actions.map { action in
                let reference = HandlerReference(name: action, location: isProgram ? "/plugins/x" : nil)
                return Action(.use(reference, with: .object([:])), place: place)
            }, timeout: timeout, concurrency: concurrency, retry: retry)
    }
}

extension Rule {
    /// The rule with some keys set otherwise.
    func with(_ change: (inout Rule) -> Void) -> Rule {
        var rule = self
        change(&rule)
        return rule
    }
}

/// A value that threads may share.
final class Shared<Value: Sendable>: Sendable {
    private let storage: Mutex<Value>

    init(_ value: Value) { storage = Mutex(value) }

    var value: Value { storage.withLock { $0 } }

    @discardableResult
    func change<Result: Sendable>(_ body: (inout Value) -> Result) -> Result { storage.withLock { body(&$0) } }
}
