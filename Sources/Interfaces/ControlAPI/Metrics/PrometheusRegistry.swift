package import CoreMetrics
import Synchronization

/// A metrics backend for swift-metrics that exports the text format of Prometheus.
///
/// Counters and gauges are atomic, and each histogram has its own lock, so recording never waits for an export.
/// Creating a metric again with the same name and labels returns the same one, for the lifetime of the registry.
///
/// The format is version 0.0.4 of https://prometheus.io/docs/instrumenting/exposition_formats.
package final class PrometheusRegistry: MetricsFactory {
    /// The content type of ``text()``.
    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// Upper bounds of the histogram buckets in seconds, from a quick handler to a file that settles for an hour.
    package static let bounds: [Double] = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600,
    ]

    private enum Metric: Sendable {
        case counter(CounterCell)
        case gauge(GaugeCell)
        case histogram(HistogramCell)

        var type: String {
            switch self {
            case .counter: "counter"
            case .gauge: "gauge"
            case .histogram: "histogram"
            }
        }
    }

    /// The metrics by name, then by their formatted labels.
    private let metrics = Mutex<[String: [String: Metric]]>([:])
    private let help: [String: String]

    /// Creates a registry.
    ///
    /// - Parameter help: The help text of each metric, by its name.
    package init(help: [String: String] = [:]) { self.help = help }

    // MARK: Creating metrics

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        make(label, dimensions, { if case .counter(let cell) = $0 { cell } else { nil } }) {
            let cell = CounterCell()
            return (cell, .counter(cell))
        }
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        gauge(label, dimensions)
    }

    /// Creates a histogram of values, in seconds by convention, if the recorder aggregates; else a gauge.
    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        aggregate ? histogram(label, dimensions) : gauge(label, dimensions)
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        histogram(label, dimensions)
    }

    private func gauge(_ label: String, _ dimensions: [(String, String)]) -> GaugeCell {
        make(label, dimensions, { if case .gauge(let cell) = $0 { cell } else { nil } }) {
            let cell = GaugeCell()
            return (cell, .gauge(cell))
        }
    }

    private func histogram(_ label: String, _ dimensions: [(String, String)]) -> HistogramCell {
        make(label, dimensions, { if case .histogram(let cell) = $0 { cell } else { nil } }) {
            let cell = HistogramCell(bounds: Self.bounds)
            return (cell, .histogram(cell))
        }
    }

    /// Returns the existing cell, or a new one.
    ///
    /// If the name is used for another type of metric, the new cell is not exported.
    private func make<Cell>(
        _ label: String, _ dimensions: [(String, String)], _ existing: (Metric) -> Cell?,
        _ new: () -> (Cell, Metric)
    ) -> Cell {
        let labels = Self.labels(dimensions)
        return metrics.withLock { metrics in
            if let metric = metrics[label]?[labels], let cell = existing(metric) { return cell }
            let (cell, metric) = new()
            let isOfOneKind = metrics[label]?.values.first.map { $0.type == metric.type } ?? true
            if isOfOneKind { metrics[label, default: [:]][labels] = metric }
            return cell
        }
    }

    // Metrics are never removed: a counter that disappeared and came back would look like a restart.
    package func destroyCounter(_: any CounterHandler) {}
    package func destroyMeter(_: any MeterHandler) {}
    package func destroyRecorder(_: any RecorderHandler) {}
    package func destroyTimer(_: any TimerHandler) {}

    // MARK: Exporting

    /// Returns all metrics, sorted by name, with their help texts.
    package func text() -> String {
        let metrics = metrics.withLock { $0 }
        var text = ""
        for (name, series) in metrics.sorted(by: { $0.key < $1.key }) {
            guard let type = series.values.first?.type else { continue }
            if let help = help[name] { text += "# HELP \(name) \(Self.escaped(help, quotes: false))\n" }
            text += "# TYPE \(name) \(type)\n"
            for (labels, metric) in series.sorted(by: { $0.key < $1.key }) {
                switch metric {
                case .counter(let cell): text += "\(name)\(Self.braced(labels)) \(cell.value)\n"
                case .gauge(let cell): text += "\(name)\(Self.braced(labels)) \(Self.number(cell.value))\n"
                case .histogram(let cell): text += Self.lines(name, labels, cell)
                }
            }
        }
        return text
    }

    private static func lines(_ name: String, _ labels: String, _ cell: HistogramCell) -> String {
        let (counts, sum) = cell.values
        var text = ""
        var total: UInt64 = 0
        let prefix = labels.isEmpty ? "" : labels + ","
        for (index, count) in counts.enumerated() {
            total += count
            let bound = index < bounds.count ? number(bounds[index]) : "+Inf"
            text += "\(name)_bucket{\(prefix)le=\"\(bound)\"} \(total)\n"
        }
        return text + "\(name)_sum\(braced(labels)) \(number(sum))\n\(name)_count\(braced(labels)) \(total)\n"
    }

    private static func braced(_ labels: String) -> String { labels.isEmpty ? "" : "{\(labels)}" }

    private static func labels(_ dimensions: [(String, String)]) -> String {
        dimensions.map { "\($0.0)=\"\(escaped($0.1, quotes: true))\"" }.joined(separator: ",")
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quotes: escaped += "\\\""
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    private static func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)"
    }
}

private final class CounterCell: CounterHandler {
    private let count = Atomic<Int64>(0)

    var value: Int64 { count.load(ordering: .relaxed) }

    func increment(by amount: Int64) { count.wrappingAdd(amount, ordering: .relaxed) }
    func reset() { count.store(0, ordering: .relaxed) }
}

private final class GaugeCell: MeterHandler, RecorderHandler {
    private let bits = Atomic<UInt64>(0)

    var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }
    func record(_ value: Int64) { set(Double(value)) }
    func record(_ value: Double) { set(value) }

    func increment(by amount: Double) {
        var old = bits.load(ordering: .relaxed)
        while true {
            let new = (Double(bitPattern: old) + amount).bitPattern
            let (exchanged, original) = bits.compareExchange(expected: old, desired: new, ordering: .relaxed)
            if exchanged { return }
            old = original
        }
    }

    func decrement(by amount: Double) { increment(by: -amount) }
}

private final class HistogramCell: TimerHandler, RecorderHandler {
    private struct State {
        var counts: [UInt64]
        var sum = 0.0
    }

    private let bounds: [Double]
    private let state: Mutex<State>

    init(bounds: [Double]) {
        self.bounds = bounds
        state = Mutex(State(counts: [UInt64](repeating: 0, count: bounds.count + 1)))
    }

    /// The number of values in each bucket, the last being above all bounds, and the sum of all values.
    var values: (counts: [UInt64], sum: Double) { state.withLock { ($0.counts, $0.sum) } }

    func record(_ value: Double) {
        let place = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[place] += 1
            state.sum += value
        }
    }

    func record(_ value: Int64) { record(Double(value)) }
    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
}
