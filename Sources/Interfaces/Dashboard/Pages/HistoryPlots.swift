import JSON

/// The plots of the overview, from the history object of the API.
struct HistoryPlots {
    /// The number of bars.
    private static let buckets = 90
    /// The duration of one bar in seconds; it divides a day, so that bars stay in place while time passes.
    private static let length = 20

    private var points: [[JSONValue]]

    init(_ history: JSONValue) {
        points = Array(repeating: [], count: Self.buckets)
        let all = history["points"].elements
        guard let last = all.last.flatMap({ Self.bucket($0["at"].text) }) else { return }
        let day = 86_400 / Self.length
        for point in all {
            guard let bucket = Self.bucket(point["at"].text) else { continue }
            let index = Self.buckets - 1 - (last - bucket + day) % day
            if index >= 0 { points[index].append(point) }
        }
    }

    /// Returns the bucket of a timestamp within its day, such as `2026-11-22T05:33:07.118Z`.
    private static func bucket(_ timestamp: String) -> Int? {
        let clock = timestamp.utf8.dropFirst(11).prefix(8).split(separator: UInt8(ascii: ":")).compactMap {
            Int(String(decoding: $0, as: UTF8.self))
        }
        guard clock.count == 3 else { return nil }
        return (clock[0] * 3600 + clock[1] * 60 + clock[2]) / length
    }

    var figures: HTML { "\(throughput.figure)\(queue.figure)\(latency.figure)" }

    // MARK: Plots

    private func sums(_ name: String) -> [Double] { points.map { $0.reduce(0) { $0 + ($1[name].double ?? 0) } } }

    private func notes(_ note: (Int) -> String?) -> [(timestamp: String, text: String)?] {
        points.indices.map { index in
            guard let timestamp = points[index].first?["at"].string, let text = note(index) else { return nil }
            return (timestamp, text)
        }
    }

    private var throughput: Plot {
        let (events, succeeded, skipped, failed) = (sums("events"), sums("succeeded"), sums("skipped"), sums("failed"))
        func bars(_ values: [Double]) -> [Double?] { zip(values, points).map { $1.isEmpty ? nil : $0 } }
        func latest(_ values: [Double]) -> String { Wording.number(Int(values.last ?? 0)) }
        func total(_ values: [Double]) -> String { Wording.number(Int(values.reduce(0, +))) }
        let jobs = points.indices.map { succeeded[$0] + skipped[$0] + failed[$0] }
        let most = max(jobs.max() ?? 0, events.max() ?? 0)
        return Plot(
            id: "throughput", title: "Throughput", unit: "per \(Self.length) s",
            series: [
                .init(label: "succeeded", kind: "ok", form: .bars, values: bars(succeeded), latest: latest(succeeded)),
                .init(label: "skipped", kind: "calm", form: .bars, values: bars(skipped), latest: latest(skipped)),
                .init(label: "failed", kind: "bad", form: .bars, values: bars(failed), latest: latest(failed)),
                .init(label: "events", kind: "live", form: .line, values: bars(events), latest: latest(events)),
            ],
            axis: .even(for: most, least: 6),
            summary:
                "In the last half hour: \(total(events)) events, \(total(succeeded)) jobs succeeded, "
                + "\(total(skipped)) skipped, \(total(failed)) failed.",
            notes: notes { index in
                guard events[index] + jobs[index] > 0 else { return nil }
                let words = [(events, "events"), (succeeded, "succeeded"), (skipped, "skipped"), (failed, "failed")]
                return words.filter { $0.0[index] > 0 }
                    .map { "\(Wording.number(Int($0.0[index]))) \($0.1)" }.joined(separator: ", ")
            })
    }

    private var queue: Plot {
        let queue = most("queue")
        let now = queue.last.flatMap { $0 } ?? 0
        let peak = queue.compactMap { $0 }.max() ?? 0
        return Plot(
            id: "queue", title: "Queue", unit: "jobs",
            series: [
                .init(label: "pending", kind: "warn", form: .area, values: queue, latest: Wording.number(Int(now)))
            ],
            axis: .even(for: peak, least: 4),
            summary:
                "\(Wording.count(Int(now), "job")) pending now, at most \(Wording.number(Int(peak))) in the last half hour.",
            notes: notes { index in queue[index].flatMap { $0 > 0 ? "\(Wording.number(Int($0))) pending" : nil } })
    }

    private var latency: Plot {
        let shown = [
            ("settling", "settle_p50", "settle"), ("waiting", "wait_p50", "warn"), ("running", "run_p50", "live"),
            ("slowest 1 %", "run_p99", "deep"),
        ].map { (label: $0, values: most($1), kind: $2) }
        func latest(_ values: [Double?]) -> String {
            values.last { $0 != nil }.flatMap { $0 }.map { Wording.duration(seconds: $0) } ?? "–"
        }
        let sentence = shown.map { "\($0.label) \(latest($0.values))" }.joined(separator: ", ")
        return Plot(
            id: "latency", title: "Latency", unit: "median",
            series: shown.map {
                .init(label: $0.label, kind: $0.kind, form: .line, values: $0.values, latest: latest($0.values))
            },
            axis: .decades(for: shown.flatMap { $0.values.compactMap { $0 } }.max() ?? 0),
            summary: "Latest durations of a job: \(sentence).",
            notes: notes { index in
                let words = shown.compactMap { series in
                    series.values[index].map { "\(series.label) \(Wording.duration(seconds: $0))" }
                }
                return words.isEmpty ? nil : words.joined(separator: ", ")
            })
    }

    /// Returns the maximum in each bucket.
    private func most(_ name: String) -> [Double?] { points.map { $0.compactMap { $0[name].double }.max() } }
}
