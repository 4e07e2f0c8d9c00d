import ControlAPI
import CoreMetrics
import Testing

/// The output of `/metrics`, byte by byte.
struct PrometheusRegistryTests {
    @Test func `counters, gauges and histograms are written by name and labels`() {
        let registry = PrometheusRegistry(help: ["jobs_total": "Jobs, by\nrule.", "wait_seconds": "How long."])
        let labels = [("rule", "a \"b\"\\c\nd"), ("state", "failed")]
        Counter(label: "jobs_total", dimensions: labels, factory: registry).increment(by: 2)
        // The same label and dimensions give the same counter.
        Counter(label: "jobs_total", dimensions: labels, factory: registry).increment()
        Counter(label: "jobs_total", dimensions: [("rule", "a"), ("state", "failed")], factory: registry).increment()
        let gauge = Meter(label: "queue", factory: registry)
        gauge.set(7.5)
        gauge.decrement(by: 0.25)
        let timer = Timer(label: "wait_seconds", factory: registry)
        timer.recordMilliseconds(1)
        timer.recordMilliseconds(40)
        timer.recordSeconds(7200)
        let text = registry.text()
        #expect(
            text.hasPrefix(
                """
                # HELP jobs_total Jobs, by\\nrule.
                # TYPE jobs_total counter
                jobs_total{rule="a \\"b\\"\\\\c\\nd",state="failed"} 3
                jobs_total{rule="a",state="failed"} 1
                # TYPE queue gauge
                queue 7.25
                # HELP wait_seconds How long.
                # TYPE wait_seconds histogram
                wait_seconds_bucket{le="0.001"} 1
                wait_seconds_bucket{le="0.0025"} 1

                """), "\(text)")
        #expect(
            text.hasSuffix(
                """
                wait_seconds_bucket{le="0.05"} 2
                wait_seconds_bucket{le="0.1"} 2
                wait_seconds_bucket{le="0.25"} 2
                wait_seconds_bucket{le="0.5"} 2
                wait_seconds_bucket{le="1"} 2
                wait_seconds_bucket{le="2.5"} 2
                wait_seconds_bucket{le="5"} 2
                wait_seconds_bucket{le="10"} 2
                wait_seconds_bucket{le="30"} 2
                wait_seconds_bucket{le="60"} 2
                wait_seconds_bucket{le="300"} 2
                wait_seconds_bucket{le="1800"} 2
                wait_seconds_bucket{le="3600"} 2
                wait_seconds_bucket{le="+Inf"} 3
                wait_seconds_sum 7200.041
                wait_seconds_count 3

                """), "\(text)")
    }

    @Test func `a name has one type`() {
        let registry = PrometheusRegistry()
        Counter(label: "x", factory: registry).increment()
        Meter(label: "x", factory: registry).set(5)
        Meter(label: "x", dimensions: [("a", "b")], factory: registry).set(5)
        #expect(registry.text() == "# TYPE x counter\nx 1\n")
    }

    @Test func `no increment is lost when many threads count at once`() async {
        let registry = PrometheusRegistry()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<1_000 {
                        Counter(label: "n", factory: registry).increment()
                        Timer(label: "t", factory: registry).recordNanoseconds(1)
                        Meter(label: "m", factory: registry).increment()
                    }
                }
            }
        }
        let lines = registry.text().split(separator: "\n")
        #expect(lines.contains("n 8000") && lines.contains("m 8000") && lines.contains("t_count 8000"))
    }
}
