import CAlightLinux
import Glibc
import Synchronization

/// Tells systemd how the service is, by its notify protocol.
///
/// Without `NOTIFY_SOCKET` there is none, and nothing of this happens.
final class ServiceManager: Sendable {
    private let descriptor: Int32
    private let path: String
    /// How often a sign of life is asked for; nil if it is not.
    let watchdog: Duration?

    private struct State {
        var isReady = false
        /// Whether rules are being read that the engine has not been given.
        var isLoading = false
        var isStopping = false
    }

    private let state = Mutex(State())

    /// - Parameter variables: The environment.
    init?(_ variables: [String: String]) {
        guard let path = variables["NOTIFY_SOCKET"], path.hasPrefix("/") || path.hasPrefix("@") else { return nil }
        descriptor = cal_datagram_socket()
        guard descriptor >= 0 else { return nil }
        self.path = path
        // Meant for the process of that number, and for nobody who inherits the variable.
        let isMeant = variables["WATCHDOG_PID"].map { $0 == "\(getpid())" } ?? true
        let length = variables["WATCHDOG_USEC"].flatMap { Int64($0) } ?? 0
        watchdog = isMeant && length > 0 ? .microseconds(length) : nil
    }

    deinit { close(descriptor) }

    // MARK: What is told

    /// Everything is watched, at the start or for other rules.
    func noteReady(_ status: String) {
        let isDue = state.withLock { state in
            state.isReady = true
            return !state.isLoading && !state.isStopping
        }
        send([isDue ? "READY=1" : nil, "STATUS=\(status)"])
    }

    /// Rules are read again.
    func noteReloading() {
        let isDue = state.withLock { state in
            guard state.isReady, !state.isStopping else { return false }
            state.isLoading = true
            return true
        }
        guard isDue else { return }
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let time = UInt64(now.tv_sec) * 1_000_000 + UInt64(now.tv_nsec) / 1_000
        send(["RELOADING=1", "MONOTONIC_USEC=\(time)", "STATUS=reading the rules again"])
    }

    /// Rules were read, and the engine has them: it says when they are watched.
    func noteLoaded() { state.withLock { $0.isLoading = false } }

    /// Those that ran before go on.
    func noteNotReloaded() {
        let isDue = state.withLock { state in
            state.isLoading = false
            return state.isReady && !state.isStopping
        }
        if isDue { send(["READY=1", "STATUS=the rules contain errors; the rules loaded before stay in effect"]) }
    }

    /// The start takes long: so much is done.
    func noteProgress(_ status: String) {
        send([state.withLock { $0.isReady } ? nil : "EXTEND_TIMEOUT_USEC=60000000", "STATUS=\(status)"])
    }

    func note(_ status: String) { send(["STATUS=\(status)"]) }

    func noteStopping(_ status: String) {
        state.withLock { $0.isStopping = true }
        send(["STOPPING=1", "STATUS=\(status)"])
    }

    /// What was touched has been seen.
    func noteAlive() { send(["WATCHDOG=1"]) }

    /// Sends lines; whoever does not read them is not waited for.
    private func send(_ lines: [String?]) {
        // A line must not begin another one.
        let text = lines.compactMap { $0?.replacing("\n", with: " ") }.joined(separator: "\n")
        let bytes = Array(text.utf8)
        _ = cal_send_datagram(descriptor, path, bytes, bytes.count)
    }
}
