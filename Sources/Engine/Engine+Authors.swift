import FileEvents
import FileWatching
import Reconciling
import Rules
import Settling

// Who did what is told, for rules that ask.
extension Engine {
    /// Where it is known from.
    enum AuthorSource {
        /// Nobody asks, or what is there is handled and nothing else.
        case none
        /// The kernel does not tell this process.
        case denied
        case recorder(AuthorRecorder)

        var recorder: AuthorRecorder? {
            guard case .recorder(let recorder) = self else { return nil }
            return recorder
        }

        /// Fills in who did what the events of a turn tell of.
        func attribute(_ turn: inout Reconciler.Turn, for ruleset: Ruleset) {
            guard ruleset.needsAuthors else { return }
            // A rule that stops others may ask for what they are told of.
            let asked = turn.events.indices.filter { turn.events[$0].event.kind.isDeed }
            switch self {
            case .none: for index in asked { turn.events[index].event.author = .unknown(.unseen) }
            case .denied: for index in asked { turn.events[index].event.author = .unknown(.denied) }
            case .recorder(let recorder):
                let questions = asked.map { index in
                    let (view, event) = turn.events[index]
                    return AuthorRecorder.Question(event, isTree: ruleset.rules[view].settle.isTree)
                }
                for (index, author) in zip(asked, recorder.authors(of: questions)) {
                    turn.events[index].event.author = author
                }
            }
        }
    }

    /// Begins to listen for rules that ask, if that has not begun.
    func listen(for ruleset: Ruleset, _ source: inout AuthorSource) {
        guard ruleset.needsAuthors, !options.isOnce, case .none = source else { return }
        do {
            source = .recorder(try AuthorRecorder())
        } catch {
            report(.authorsUntold(error))
            source = .denied
        }
    }
}

extension EventKind {
    /// Whether somebody did what it tells of.
    fileprivate var isDeed: Bool { !isLifecycle && !isRaw }
}
