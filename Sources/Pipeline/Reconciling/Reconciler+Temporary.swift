package import FileEvents
import Settling

extension Reconciler {
    package mutating func change(to views: [View], at now: ContinuousClock.Instant) {}
    package mutating func setAway(_ points: [PathBytes]) {}
    package var settling: Int { settler.count }
    package func unsettled(and late: [Hint]) -> [PathBytes] { [] }
}
