import CAlightLinux
import Glibc
import Synchronization
import System

/// A running `alight-launch`, which runs one program after another.
///
/// It exits with the last reference, and the program that it runs is killed.
final class LauncherProcess: EventSource {
    private struct State {
        /// Called by the loop when something has arrived from the launcher.
        var handler: (@Sendable () -> Void)?
        /// Whether something has arrived while there was no handler.
        var hasNews = false
        var isAwaited = false
        /// How it terminated, once it has been reaped and its orphans are dead.
        var end: (status: Int32, isSignal: Bool)?
    }

    /// This process's end of the control socket.
    let control: Int32
    let identifier: pid_t
    private let started: StartCounters.Counter
    /// The value of `started` before the last plan was sent.
    private let startedBefore = Atomic<UInt32>(0)
    private let state = Mutex(State())

    init(_ identifier: pid_t, _ control: Int32, _ started: StartCounters.Counter) {
        (self.identifier, self.control, self.started) = (identifier, control, started)
        startedBefore.store(started.value, ordering: .relaxed)
        EventLoop.shared.watch(control, CAL_RECEIVES, for: self, as: 0)
    }

    deinit {
        EventLoop.shared.forget(self)
        close(control)
        if state.withLock({ !$0.isAwaited }) { Self.reap(identifier) { [started] _ in _ = started } }
    }

    // MARK: - Messages and the exit

    /// Sets the closure that is called whenever something has arrived, or its end is known.
    func whenReady(_ handler: (@Sendable () -> Void)?) {
        let hasNews = state.withLock { state in
            defer { (state.handler, state.hasNews) = (handler, false) }
            return state.hasNews
        }
        if hasNews, let handler { EventLoop.shared.call(handler) }
    }

    /// Whether it has exited, so that nothing more arrives.
    var hasExited: Bool { cal_has_ended(control) != 0 }

    func handle(_ number: Int?) {
        state.withLock { state in
            state.hasNews = state.handler == nil
            return state.handler
        }?()
    }

    /// How it terminated, once it has been reaped; must be called after the end of its messages.
    var end: (status: Int32, isSignal: Bool)? {
        let (end, isAwaited) = state.withLock { ($0.end, exchange(&$0.isAwaited, with: true)) }
        if isAwaited { return end }
        Self.reap(identifier) { [self] status in
            let signal = status & 0x7F
            Orphans.killAll { [self] in
                state.withLock { $0.end = (signal == 0 ? status >> 8 & 0xFF : signal, signal != 0) }
                handle(nil)
            }
        }
        return nil
    }

    /// Reaps a child that is about to exit, and has the loop call the closure with its wait status; if another part of
    /// the process has reaped it, it counts as killed.
    static func reap(
        _ child: pid_t, after pause: Duration = .microseconds(500), then body: @escaping @Sendable (Int32) -> Void
    ) {
        EventLoop.shared.call(at: .now + pause) {
            var status: Int32 = 0
            switch waitpid(child, &status, WNOHANG) {
            case 0: reap(child, after: min(pause * 2, .milliseconds(100)), then: body)
            case child: body(status)
            default: body(SIGKILL)
            }
        }
    }

    // MARK: - Plans and orders

    /// Sends a ``LaunchPlan``, whose program the launcher then runs.
    ///
    /// - Parameters:
    ///   - plan: The bytes of the plan.
    ///   - descriptors: Standard input, output and error, the working directory, and the ruleset of a sandbox.
    ///   - waits: Whether it may block until the launcher reads.
    /// - Returns: 0, or the errno, after which the launcher runs nothing more.
    func run(_ plan: [UInt8], with descriptors: [Int32], waits: Bool = true) -> Int32 {
        startedBefore.store(started.value, ordering: .relaxed)
        // The handler of an idle launcher.
        whenReady(nil)
        return cal_send_with_descriptors(control, plan, plan.count, descriptors, descriptors.count, waits ? 1 : 0)
    }

    /// Whether it has started the program of the last plan.
    var hasStarted: Bool { started.value != startedBefore.load(ordering: .relaxed) }

    enum Order: UInt8 {
        /// Asks the program to exit, and kills it after the grace period.
        case terminate = 0x54
        /// Kills it at once.
        case kill = 0x4B
    }

    /// Sends an order for the running program; it has no effect when that has exited.
    ///
    /// - Returns: False when the launcher accepts no orders.
    func send(_ order: Order) -> Bool {
        // The socket alone does not wake it.
        cal_send_byte(control, order.rawValue) == 0 && cal_signal_child(identifier, SIGUSR1) == 0
    }

    /// Resumes the launcher if it was stopped; its program is not affected.
    ///
    /// - Returns: Whether it was stopped.
    func resumeItself() -> Bool {
        guard Descendants.state(of: identifier) == "T" else { return false }
        return cal_signal_child(identifier, SIGCONT) == 0
    }

    /// Resumes the launcher and its descendants, such as its child that waits for the plan.
    func resume() {
        _ = cal_signal_child(identifier, SIGCONT)
        for process in Descendants.of(identifier) { Glibc.kill(process, SIGCONT) }
    }

    /// Kills the launcher itself and its descendants.
    func kill() {
        // Orphans become its children as long as it lives. A process that forks faster than this is at least not its
        // child any more.
        for _ in 0..<8 {
            let processes = Descendants.of(identifier)
            for process in processes { Glibc.kill(process, SIGKILL) }
            if processes.isEmpty { break }
        }
        _ = cal_signal_child(identifier, SIGKILL)
    }
}

/// The descendants of a process, according to /proc.
enum Descendants {
    /// Returns the descendants without zombies; none where the kernel does not list them.
    static func of(_ process: pid_t) -> [pid_t] {
        var found: [pid_t] = []
        var parents = [process]
        while let parent = parents.popLast() {
            let children = children(of: parent)
            found += children.filter { (state(of: $0) ?? "Z") != "Z" }
            parents += children
        }
        return found
    }

    /// Returns the children of all threads, including zombies.
    static func children(of process: pid_t) -> [pid_t] {
        let threads = (try? KernelFileSystem().names(following: PathBytes("/proc/\(process)/task"))) ?? []
        return threads.flatMap { thread in
            ProcFile.text(of: "/proc/\(process)/task/\(thread)/children").split(separator: " ").compactMap { pid_t($0) }
        }
    }

    /// Returns whether the process cannot gain new privileges, which is permanent and true of all descendants of a
    /// launcher.
    static func hasNoNewPrivileges(_ process: pid_t) -> Bool {
        ProcFile.text(of: "/proc/\(process)/status").contains("\nNoNewPrivs:\t1\n")
    }

    /// Returns the letter of proc_pid_stat(5) for the state; nil when the process is gone.
    static func state(of process: pid_t) -> Character? {
        let text = ProcFile.text(of: "/proc/\(process)/stat")
        return text[(text.lastIndex(of: ")") ?? text.startIndex)...].dropFirst(2).first
    }
}
