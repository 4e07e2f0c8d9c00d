import ControlAPI
import CoreMetrics
import Glibc
import Pipeline
import Storage
import System
import Watching

/// The contents of `/metrics`: the counters of the engine, its current status, and the resources of the process.
final class RunningMetrics: Sendable {
    let registry = PrometheusRegistry(help: EngineMetrics.help.merging(RunningMetrics.help) { own, _ in own })

    private static let help = [
        "alight_build_info": "1, with the version and the commit of the program.",
        "alight_degraded": "1 if 'alight status' reports a problem.", "alight_paused": "1 if all rules are paused.",
        "alight_settling_paths": "Paths that have not settled yet.",
        "alight_queue_jobs": "Jobs by state: pending, running, or failed.",
        "alight_watches": "inotify watches in use by Alight.",
        "alight_watches_limit": "Maximum number of inotify watches of the user, over all programs.",
        "alight_roots": "Root directories of rules, by the backend that watches them.",
        "alight_journal_bytes": "The size of the journal's files.",
    ]

    /// Returns all metrics.
    ///
    /// - Parameter status: The current status.
    /// - Returns: All metrics in the text format of Prometheus.
    func text(_ status: RunningStatus) -> String {
        set("alight_build_info", [("version", Version.number), ("commit", Version.commit ?? "")], 1)
        set("alight_degraded", status.reasons.isEmpty ? 0 : 1)
        set("alight_paused", status.engine.pauses.all ? 1 : 0)
        set("alight_settling_paths", Double(status.engine.settling))
        let queue = status.engine.queue
        for (state, jobs) in [("pending", queue.pending), ("running", queue.running), ("failed", status.failed.count)] {
            set("alight_queue_jobs", [("state", state)], Double(jobs))
        }
        set("alight_watches", Double(status.watching.watches))
        set("alight_watches_limit", Double(status.watching.limit))
        for means in [WatchStatus.Means.inotify, .polling, .missing] {
            let roots = status.watching.roots.count { $0.means == means }
            set("alight_roots", [("backend", means.rawValue)], Double(roots))
        }
        set("alight_journal_bytes", Double(status.journal.size))
        return registry.text() + process
    }

    private func set(_ name: String, _ value: Double) { set(name, [], value) }

    private func set(_ name: String, _ labels: [(String, String)], _ value: Double) {
        Meter(label: name, dimensions: labels, factory: registry).set(value)
    }

    // MARK: The process

    /// The metrics of the process, with the names that the Prometheus client libraries use.
    private var process: String {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        let seconds = Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        var text = ""
        func add(_ name: String, _ type: String, _ help: String, _ value: Double) {
            text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n\(name) \(value)\n"
        }
        add("process_cpu_seconds_total", "counter", "CPU time of Alight itself, in seconds.", seconds)
        if let pages = ProcessFiles.resident {
            add(
                "process_resident_memory_bytes", "gauge", "Resident memory, in bytes.",
                Double(pages) * Double(sysconf(Int32(_SC_PAGESIZE))))
        }
        if let count = ProcessFiles.count(of: "/proc/self/fd") {
            add("process_open_fds", "gauge", "Open file descriptors.", Double(count))
        }
        if let count = ProcessFiles.count(of: "/proc/self/task") {
            add("process_threads", "gauge", "Threads.", Double(count))
        }
        add("process_start_time_seconds", "gauge", "Start time since the Unix epoch, in seconds.", start)
        return text
    }

    /// The start time of the process, in seconds since 1970.
    private let start = Double(time(nil))
}

/// Values of this process from /proc; see proc(5).
private enum ProcessFiles {
    /// The number of resident pages.
    static var resident: Int? {
        guard let file = fopen("/proc/self/statm", "re") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        guard fgets(&line, Int32(line.count), file) != nil else { return nil }
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    }

    /// Returns the number of entries of a directory.
    static func count(of folder: PathBytes) -> Int? { try? DiskProbe.names(following: folder).count }
}
