/// The pause before a program that has died is started again.
struct CrashBackOff: Sendable {
    /// The number of deaths in a minute from which requests are refused.
    static let mostDeaths = 5

    /// Returns the pause before a start, by the number of processes that have died since the last answer.
    static func pause(after deaths: Int) -> Duration { .seconds(min(1 << min(deaths - 1, 6), 60)) }

    private var deaths = 0
    private var recent: [ContinuousClock.Instant] = []
    /// The time before which no process starts; nil if none has died.
    private(set) var startAt: ContinuousClock.Instant?
    /// The reason why requests are refused until then; nil while they may wait.
    private(set) var trouble: String?

    mutating func addDeath(_ reason: String, at now: ContinuousClock.Instant) {
        deaths += 1
        recent = recent.filter { $0 > now - .seconds(60) } + [now]
        startAt = now + Self.pause(after: deaths)
        if recent.count >= Self.mostDeaths {
            trouble = "has crashed \(recent.count) times in a minute; the last time it \(reason)"
        }
    }

    func isPausing(at now: ContinuousClock.Instant) -> Bool { startAt.map { now < $0 } ?? false }
}
