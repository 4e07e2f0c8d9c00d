import Configuration
import ControlAPI
import CoreMetrics
import Dashboard
import FileEvents
import Glibc
import JSON
import Monitoring
import Records
import Rules
import Storage
import System
import Watching

/// The control server of a running instance.
struct RunningControl {
    private let server: ControlServer?

    /// Starts the server, and reports its addresses, and its socket if that is not the default one.
    ///
    /// `note` is called with the path of the socket, also later when it has been created again.
    ///
    /// Alight also works without the socket, so only a failure of an address or socket that was named explicitly is an
    /// error.
    ///
    /// - Throws: A `ControlProblem` when the server cannot be started as requested.
    init(
        _ addresses: [ListenAddress], _ settings: Configuration, _ operations: RunningOperations,
        _ metrics: RunningMetrics?, _ feed: EventFeed, _ reporter: Reporter,
        note: @escaping @Sendable (PathBytes?) -> Void
    ) throws(ControlProblem) {
        let urls = addresses.isEmpty ? [] : settings.externalURLs?.value ?? []
        let isOpen = !urls.isEmpty || addresses.contains { !$0.isLoopback }
        let access = Access(
            hosts: addresses.reduce(into: []) { $0.formUnion($1.hosts) },
            takesNumbers: addresses.contains(where: \.isAny), origins: Set(urls),
            token: isOpen ? try Self.token(operations.journal) : nil)
        let socket = try Self.socket(settings, reporter)
        guard socket != nil || !addresses.isEmpty else {
            server = nil
            return
        }
        let text = metrics.map { metrics in { @Sendable in metrics.text(operations.currentStatus()) } }
        var routes = Routes(operations, metrics: text)
        routes.addPages(operations)
        note(socket?.path)
        server = try ControlServer(
            socket, addresses: addresses, access: access, routes: routes, operations: operations, feed: feed,
            renew: { lost, isRepeated in
                let socket = Self.renewed(settings, lost, isRepeated: isRepeated, reporter)
                if let socket { note(socket.path) }
                return socket
            },
            complain: { problem in
                reporter.emit(
                    .warning, "cannot serve requests at the control socket: \(Display.text(problem))",
                    help: "install libmicrohttpd12, and restart Alight")
            })
        for link in addresses.map({ "http://\($0.linkText)/" }) + urls.map({ "\($0)/" }) {
            guard let token = access.token else {
                reporter.emit(.notice, "dashboard: \(link)")
                continue
            }
            // The token is required for access, so it is printed at every log level.
            reporter.log(.notice, "dashboard: \(link)?token=\(token)")
        }
        for address in addresses where !address.isLoopback {
            reporter.emit(
                .warning, "'\(address.text)' can be reached by other hosts, and the connection is not encrypted",
                help: "listen at 127.0.0.1 and use ssh -L, or put a proxy with TLS in front")
        }
    }

    /// Returns the stored token, or a new one if the journal is in memory, so that nothing outlives the process.
    private static func token(_ journal: PathBytes?) throws(ControlProblem) -> String {
        guard let journal else { return Access.makeToken() }
        return try TokenFile.token(at: TokenFile.path(beside: journal))
    }

    /// Stops the server, and removes the socket.
    func end() { server?.stop() }

    // MARK: - The socket

    /// Creates the socket, and reports where it is if that is not the default path.
    ///
    /// - Throws: A `ControlProblem` when a socket that was named for this instance cannot be created.
    private static func socket(
        _ settings: Configuration, _ reporter: Reporter
    ) throws(ControlProblem) -> ControlSocket? {
        do throws(ControlProblem) {
            guard let (socket, taken) = try create(settings) else { return nil }
            if let taken {
                reporter.emit(
                    .notice,
                    "another instance listens at '\(Display.path(taken))'; this one listens at "
                        + "'\(Display.path(socket.path))'")
            }
            return socket
        } catch {
            if isNamed(settings) { throw error }
            reporter.emit(
                .warning, "\(Display.text(error.message)); without it there is no 'alight status'", help: error.help)
            return nil
        }
    }

    /// Creates the socket again, where the commands look for it now; returns nil if that is not possible.
    ///
    /// `lost` is the path of the one that has been removed, and `isRepeated` whether this has failed before.
    private static func renewed(
        _ settings: Configuration, _ lost: PathBytes, isRepeated: Bool, _ reporter: Reporter
    ) -> ControlSocket? {
        let removal = "the control socket '\(Display.path(lost))' has been removed"
        do throws(ControlProblem) {
            guard let (socket, _) = try create(settings) else { return nil }
            reporter.emit(.notice, "\(removal); this instance listens at '\(Display.path(socket.path))'")
            return socket
        } catch {
            if !isRepeated {
                reporter.emit(
                    .warning,
                    "\(removal), and until it can be created again there is no 'alight status': "
                        + Display.text(error.message), help: error.help)
            }
            return nil
        }
    }

    /// Creates the socket at the first path at which that is possible, or beside one at which another instance listens;
    /// returns nil if the socket is turned off.
    private static func create(
        _ settings: Configuration
    ) throws(ControlProblem) -> (socket: ControlSocket, taken: PathBytes?)? {
        var problem: ControlProblem?
        for path in settings.controlPaths {
            do throws(ControlProblem) {
                return (try ControlSocket(at: path), nil)
            } catch {
                guard error.isTaken, !isNamed(settings) else {
                    problem = problem ?? error
                    continue
                }
            }
            // Removes the sockets of instances that were killed.
            _ = ControlSocket.otherSockets(excluding: path, removingStale: true)
            return (try ControlSocket(at: ControlSocket.excluding(path, process: getpid())), path)
        }
        if let problem { throw problem }
        return nil
    }

    /// Whether the socket is for this instance alone, and required; other settings may be shared.
    private static func isNamed(_ settings: Configuration) -> Bool { settings.control?.origin == .flag("--control") }
}

extension EventFeed {
    /// Publishes a report of the engine to the clients that follow the events.
    func take(_ report: EngineReport) {
        for attempt in report.attempts { publish(.attempt) { Reporter.object(attempt).line } }
        guard case .accepted(let jobs) = report, isFollowed else { return }
        // One event per path, regardless of the number of rules.
        var rules: [PathBytes: [String]] = [:]
        for job in jobs { rules[job.event.path, default: []].append(job.rule) }
        for job in jobs {
            guard let names = rules.removeValue(forKey: job.event.path) else { continue }
            let (path, kind, time) = (job.event.path, job.event.kind, job.event.time)
            publish(.file) {
                JSONValue.members(["at": time.milliseconds, "kind": kind.rawValue, "rules": names, "path": path]).line
            }
        }
    }
}

extension Timestamp {
    /// The time in RFC 3339 format in UTC with milliseconds, the format of all times in the API.
    var milliseconds: String {
        let whole = Timestamp(seconds: seconds, nanoseconds: 0).description.dropLast()
        return "\(whole).\(String(nanoseconds / 1_000_000, width: 3))Z"
    }
}

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
        "alight_journal_bytes": "The size of the journal's files.", "process_open_fds": "Open file descriptors.",
        "process_resident_memory_bytes": "Resident memory, in bytes.", "process_threads": "Threads.",
        "process_start_time_seconds": "Start time since the Unix epoch, in seconds.",
    ]

    /// Returns all metrics.
    ///
    /// - Parameter status: The current status.
    /// - Returns: All metrics in the text format of Prometheus.
    func text(_ status: RunningStatus) -> String {
        set("alight_build_info", 1, [("version", Version.number), ("commit", Version.commit ?? "")])
        set("alight_degraded", status.reasons.isEmpty ? 0 : 1)
        set("alight_paused", status.engine.pauses.all ? 1 : 0)
        set("alight_settling_paths", status.engine.settling)
        let queue = status.engine.queue
        for (state, jobs) in [("pending", queue.pending), ("running", queue.running), ("failed", status.failed.count)] {
            set("alight_queue_jobs", jobs, [("state", state)])
        }
        set("alight_watches", status.watching.watches)
        set("alight_watches_limit", status.watching.limit)
        for means in [WatchStatus.Means.inotify, .polling, .missing] {
            let roots = status.watching.roots.count { $0.means == means }
            set("alight_roots", roots, [("backend", means.rawValue)])
        }
        set("alight_journal_bytes", Int(status.journal.size))
        // The names that the Prometheus client libraries use.
        set("process_resident_memory_bytes", ProcessFiles.resident.map { $0 * sysconf(Int32(_SC_PAGESIZE)) })
        set("process_open_fds", ProcessFiles.count(of: "/proc/self/fd"))
        set("process_threads", ProcessFiles.count(of: "/proc/self/task"))
        set("process_start_time_seconds", start)
        // A counter with a fraction, which the registry does not have.
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return registry.text() + """
            # HELP process_cpu_seconds_total CPU time of Alight itself, in seconds.
            # TYPE process_cpu_seconds_total counter
            process_cpu_seconds_total \(Double(time.tv_sec) + Double(time.tv_nsec) / 1e9)

            """
    }

    /// Sets a value, if it is known.
    private func set(_ name: String, _ value: Int?, _ labels: [(String, String)] = []) {
        if let value { Meter(label: name, dimensions: labels, factory: registry).set(value) }
    }

    /// The start time of the process, in seconds since 1970.
    private let start = time(nil)
}

/// Values of this process from /proc; see proc(5).
private enum ProcessFiles {
    /// The number of resident pages.
    static var resident: Int? {
        ProcFile.text(of: "/proc/self/statm").split(separator: " ").dropFirst().first.flatMap { Int($0) }
    }

    /// Returns the number of entries of a directory.
    static func count(of directory: PathBytes) -> Int? { try? KernelFileSystem().names(following: directory).count }
}
