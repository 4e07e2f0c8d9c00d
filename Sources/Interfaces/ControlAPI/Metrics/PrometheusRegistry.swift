package import CoreMetrics
import Synchronization

/// A metrics backend for swift-metrics that exports the text format of Prometheus.
///
/// Counters are atomic, and each gauge and histogram has its own lock, so recording never waits for an export.
/// Creating a metric again with the same name and labels returns the same one, for the lifetime of the registry.
///
/// The format is version 0.0.4 of https://prometheus.io/docs/instrumenting/exposition_formats.
package final class PrometheusRegistry: MetricsFactory {
    /// The content type of ``text()``.
    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// The metrics by name, then by their formatted labels.
    private let metrics = Mutex<[String: [String: any ExportedMetric]]>([:])
    private let help: [String: String]

    /// Creates a registry.
    ///
    /// - Parameter help: The help text of each metric, by its name.
    package init(help: [String: String] = [:]) { self.help = help }

    // MARK: Creating metrics

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        make(CounterCell.self, label, dimensions)
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        make(GaugeCell.self, label, dimensions)
    }

    /// Creates a histogram of values, in seconds by convention, if the recorder aggregates; else a gauge.
    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        aggregate ? make(HistogramCell.self, label, dimensions) : make(GaugeCell.self, label, dimensions)
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        make(HistogramCell.self, label, dimensions)
    }

    /// Returns the existing cell, or a new one.
    ///
    /// If the name is used for another type of metric, the new cell is not exported.
    private func make<Cell: ExportedMetric>(_: Cell.Type, _ label: String, _ dimensions: [(String, String)]) -> Cell {
        let labels = dimensions.map { "\($0.0)=\"\(Self.escaped($0.1, quotes: true))\"" }.joined(separator: ",")
        return metrics.withLock { metrics in
            if let cell = metrics[label]?[labels] as? Cell { return cell }
            let cell = Cell()
            let isOfOneKind = metrics[label]?.values.first.map { $0 is Cell } ?? true
            if isOfOneKind { metrics[label, default: [:]][labels] = cell }
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
            guard let metric = series.values.first else { continue }
            if let help = help[name] { text += "# HELP \(name) \(Self.escaped(help, quotes: false))\n" }
            text += "# TYPE \(name) \(type(of: metric).type)\n"
            for (labels, metric) in series.sorted(by: { $0.key < $1.key }) { text += metric.text(name, labels) }
        }
        return text
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        text.unicodeScalars.map { scalar in
            switch scalar {
            case "\\": "\\\\"
            case "\n": "\\n"
            case "\"" where quotes: "\\\""
            default: String(scalar)
            }
        }.joined()
    }
}

/// The value of a metric, in the text format.
private protocol ExportedMetric: Sendable {
    static var type: String { get }
    init()
    func text(_ name: String, _ labels: String) -> String
}

extension ExportedMetric {
    fileprivate func line(_ name: String, _ labels: String, _ value: String) -> String {
        "\(name)\(labels.isEmpty ? "" : "{\(labels)}") \(value)\n"
    }

    fileprivate func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)"
    }
}

private final class CounterCell: CounterHandler, ExportedMetric {
    static let type = "counter"
    private let count = Atomic<Int64>(0)

    func increment(by amount: Int64) { count.wrappingAdd(amount, ordering: .relaxed) }
    func reset() { count.store(0, ordering: .relaxed) }

    func text(_ name: String, _ labels: String) -> String { line(name, labels, "\(count.load(ordering: .relaxed))") }
}

private final class GaugeCell: MeterHandler, RecorderHandler, ExportedMetric {
    static let type = "gauge"
    private let value = Mutex(0.0)

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { self.value.withLock { $0 = value } }
    func record(_ value: Int64) { set(Double(value)) }
    func record(_ value: Double) { set(value) }
    func increment(by amount: Double) { value.withLock { $0 += amount } }
    func decrement(by amount: Double) { increment(by: -amount) }

    func text(_ name: String, _ labels: String) -> String { line(name, labels, number(value.withLock { $0 })) }
}

private final class HistogramCell: TimerHandler, RecorderHandler, ExportedMetric {
    static let type = "histogram"
    /// Upper bounds of the buckets in seconds, from a quick handler to a file that settles for an hour.
    private static let bounds: [Double] = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600,
    ]

    /// The number of values in each bucket, the last being above all bounds, and the sum of all values.
    private let state = Mutex((counts: [UInt64](repeating: 0, count: bounds.count + 1), sum: 0.0))

    func record(_ value: Double) {
        let index = Self.bounds.firstIndex { value <= $0 } ?? Self.bounds.count
        state.withLock { state in
            state.counts[index] += 1
            state.sum += value
        }
    }

    func record(_ value: Int64) { record(Double(value)) }
    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }

    func text(_ name: String, _ labels: String) -> String {
        let (counts, sum) = state.withLock { $0 }
        var text = ""
        var total: UInt64 = 0
        let prefix = labels.isEmpty ? "" : labels + ","
        for (count, bound) in zip(counts, Self.bounds.map(number) + ["+Inf"]) {
            total += count
            text += line("\(name)_bucket", "\(prefix)le=\"\(bound)\"", "\(total)")
        }
        return text + line("\(name)_sum", labels, number(sum)) + line("\(name)_count", labels, "\(total)")
    }
}
