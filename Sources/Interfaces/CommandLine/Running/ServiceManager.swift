import CAlightLinux
import Glibc
import Monitoring
import Records
import Synchronization
import Watching

/// Reports the status of the service to systemd; see sd_notify(3).
///
/// Without `NOTIFY_SOCKET`, the initializer returns nil.
final class ServiceManager: Sendable {
    private let descriptor: Int32
    private let path: String
    /// The watchdog timeout; nil if the watchdog is not enabled.
    let watchdog: Duration?

    private struct State {
        var isReady = false
        /// Whether rules are being read that the engine has not received yet.
        var isLoading = false
        var isStopping = false
    }

    private let state = Mutex(State())

    /// Creates a connection; returns nil if systemd does not expect notifications.
    ///
    /// - Parameter variables: The environment variables.
    init?(_ variables: [String: String]) {
        guard let path = variables["NOTIFY_SOCKET"], path.hasPrefix("/") || path.hasPrefix("@") else { return nil }
        descriptor = cal_datagram_socket()
        guard descriptor >= 0 else { return nil }
        self.path = path
        // WATCHDOG_PID names the process that must send keep-alives; others may have inherited the variables.
        let isMeant = variables["WATCHDOG_PID"].map { $0 == "\(getpid())" } ?? true
        let length = variables["WATCHDOG_USEC"].flatMap { Int64($0) } ?? 0
        watchdog = isMeant && length > 0 ? .microseconds(length) : nil
    }

    deinit { close(descriptor) }

    // MARK: Notifications

    /// Reports that all watches are set up, at the start or after a reload.
    private func recordReady(_ status: String) {
        let isDue = state.withLock { state in
            state.isReady = true
            return !state.isLoading && !state.isStopping
        }
        send([isDue ? "READY=1" : nil, "STATUS=\(status)"])
    }

    /// Reports that the rules are being reloaded.
    func recordReloading() {
        let isDue = state.withLock { state in
            guard state.isReady, !state.isStopping else { return false }
            state.isLoading = true
            return true
        }
        guard isDue else { return }
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let time = UInt64(now.tv_sec) * 1_000_000 + UInt64(now.tv_nsec) / 1_000
        send(["RELOADING=1", "MONOTONIC_USEC=\(time)", "STATUS=reloading the rules"])
    }

    /// Records that the rules were read and passed to the engine, which reports when they are watched.
    func recordLoaded() { state.withLock { $0.isLoading = false } }

    /// Reports that the reload was rejected; the rules loaded before stay in effect.
    func recordNotReloaded() {
        let isDue = state.withLock { state in
            state.isLoading = false
            return state.isReady && !state.isStopping
        }
        if isDue { send(["READY=1", "STATUS=the rules contain errors; the rules loaded before stay in effect"]) }
    }

    /// Sends lines, without waiting if they are not read.
    private func send(_ lines: [String?]) {
        // A newline in a value would start another assignment.
        let text = lines.compactMap { $0?.replacing("\n", with: " ") }.joined(separator: "\n")
        let bytes = Array(text.utf8)
        _ = cal_send_datagram(descriptor, path, bytes, bytes.count)
    }

    /// Forwards the reports that systemd can use.
    func record(_ report: EngineReport) {
        switch report {
        case .alive: send(["WATCHDOG=1"])
        case .ready(let directories, let rules), .reloaded(let directories, let rules):
            recordReady(Reporter.watching(directories, rules))
        case .notReloaded: recordNotReloaded()
        case .watching(.progress(let directories)):
            // A start that takes long extends its timeout.
            let isReady = state.withLock { $0.isReady }
            let status = "STATUS=listing: \(directories) directories so far"
            send([isReady ? nil : "EXTEND_TIMEOUT_USEC=60000000", status])
        case .journal(let error?): send(["STATUS=the journal cannot be used: \(error.description)"])
        case .journal(nil): send(["STATUS=the journal can be written again"])
        case .draining(let jobs):
            state.withLock { $0.isStopping = true }
            let status = jobs == 0 ? "stopping" : "finishing \(Reporter.count(jobs, "job"))"
            send(["STOPPING=1", "STATUS=\(status)"])
        default: break
        }
    }
}
