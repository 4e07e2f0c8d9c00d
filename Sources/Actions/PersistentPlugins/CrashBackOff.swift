/// How long a program that has died is not started again.
struct CrashBackOff: Sendable {
    /// So many deaths in a minute are too many.
    static let mostDeaths = 5

    /// The pause before a start, by how many processes have died since the last answer.
    static func pause(after deaths: Int) -> Duration { .seconds(min(1 << min(deaths - 1, 6), 60)) }

    private var deaths = 0
    private var recent: [ContinuousClock.Instant] = []
    private var last: ContinuousClock.Instant?
    /// When the next process may start; nil once it has.
    private(set) var startAt: ContinuousClock.Instant?
    /// Why requests are refused until then; nil while they may wait.
    private(set) var trouble: String?
    /// Whether no process has become ready since one died.
    var isDoubtful = false

    mutating func addDeath(_ reason: String, at now: ContinuousClock.Instant) {
        deaths += 1
        recent = recent.filter { $0 > now - .seconds(60) } + [now]
        last = now
        startAt = now + Self.pause(after: deaths)
        isDoubtful = true
        if recent.count >= Self.mostDeaths {
            trouble = "has died \(recent.count) times in a minute; the last time it \(reason)"
        }
    }

    mutating func recordStart() { startAt = nil }

    mutating func recordAnswer() {
        deaths = 0
        recent = []
        trouble = nil
    }

    func isPausing(at now: ContinuousClock.Instant) -> Bool { startAt.map { now < $0 } ?? false }

    /// Whether all has been well for long after the longest pause.
    func isOver(at now: ContinuousClock.Instant) -> Bool { last.map { $0 <= now - .seconds(120) } ?? true }
}
