import CAlightLinux
import Foundation
import Glibc
import Synchronization
import System

/// A running `alight-launch`, which runs one program after another.
///
/// It exits with the last reference, and the program that it runs is killed.
final class LauncherProcess: Sendable {
    /// This process's end of the control socket.
    let control: Int32
    /// How it terminated, set by the thread on which Foundation reaps it.
    let end: PendingValue<(status: Int32, isSignal: Bool)>
    private let process: Process
    var identifier: pid_t { process.processIdentifier }
    /// The number of programs that it has started; the launcher counts them itself, so no process is woken for that.
    private let started: Counter
    /// The value of `started` before the last plan was sent.
    private let startedBefore = Atomic<UInt32>(0)

    /// A counter that the launcher increments.
    private final class Counter: @unchecked Sendable {
        private let memory: UnsafeMutablePointer<UInt32>
        var value: UInt32 { cal_read_counter(memory) }

        init(_ memory: UnsafeMutablePointer<UInt32>) { self.memory = memory }

        deinit { cal_drop_counter(memory) }
    }

    /// The lock that is held while a launcher starts, and while the pipes of programs are created.
    ///
    /// Foundation would mistake descriptor 0 for its own socket when no descriptor is left for that, and many threads
    /// that create pipes at that time can use up all that were counted before.
    static let opening = NSLock()

    /// Starts a launcher; the calling thread need not outlive it.
    init(_ launcher: PathBytes) throws(LaunchFailure) {
        guard let path = launcher.text else { throw LaunchFailure("the path of alight-launch is not UTF-8") }
        guard launcher.withCString({ access($0, X_OK) }) == 0 else {
            throw LaunchFailure("'\(launcher)' can't be run: \(SystemError(errno: errno))")
        }
        Self.opening.lock()
        defer { Self.opening.unlock() }
        var sockets: [Int32] = [-1, -1]
        let error = cal_socket_pair(&sockets, 10)
        guard error == 0 else {
            throw LaunchFailure("no socket: \(SystemError(errno: error))", isOfDescriptors: error == EMFILE)
        }
        let ours = OwnedDescriptor(sockets[0])
        let theirs = OwnedDescriptor(sockets[1])
        // Closed here and not with the last reference, which may go before `run()`.
        defer { theirs.close() }
        try Self.checkSpareDescriptors()
        var shared: Int32 = -1
        guard let memory = cal_make_counter(&shared) else {
            let error = errno
            let reason = "no shared memory: \(SystemError(errno: error))"
            throw LaunchFailure(reason, isOfDescriptors: error == EMFILE)
        }
        let counter = OwnedDescriptor(shared)
        defer { counter.close() }
        let started = Counter(memory)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = []
        process.environment = [:]
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        process.standardInput = FileHandle(fileDescriptor: theirs.raw, closeOnDealloc: false)
        process.standardOutput = FileHandle(fileDescriptor: counter.raw, closeOnDealloc: false)
        process.standardError = FileHandle.nullDevice
        let end = PendingValue<(status: Int32, isSignal: Bool)>()
        process.terminationHandler = { process in
            Orphans.end(of: process.processIdentifier)
            end.set((process.terminationStatus, process.terminationReason == .uncaughtSignal))
        }
        // The signal mask stays unchanged: a SIGTERM that finds it unblocked in one thread of Alight terminates Alight
        // without a message. The inherited mask does not matter, because the launcher sets its own.
        do {
            try Orphans.excluding {
                try process.run()
                return process.processIdentifier
            }
        } catch {
            throw LaunchFailure("'\(launcher)' can't be run: \(error.localizedDescription)")
        }
        self.process = process
        self.end = end
        self.started = started
        control = ours.taken()
    }

    deinit { close(control) }

    /// Sends a ``LaunchPlan``, whose program the launcher then runs.
    ///
    /// - Parameters:
    ///   - plan: The bytes of the plan.
    ///   - descriptors: Standard input, output and error, the working directory, and the ruleset of a sandbox.
    /// - Returns: 0, or the errno, after which the launcher runs nothing more.
    func run(_ plan: [UInt8], with descriptors: [Int32]) -> Int32 {
        startedBefore.store(started.value, ordering: .relaxed)
        return cal_send_with_descriptors(control, plan, plan.count, descriptors, descriptors.count)
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
    func send(_ order: Order) -> Bool { cal_send_byte(control, order.rawValue) == 0 }

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

    /// Checks that Foundation has enough descriptors for its own use.
    ///
    /// `Process.run()` does not check whether its socketpair(2) succeeded: it then uses descriptor 0 instead, and no
    /// program's exit is noticed any more. It needs two descriptors; the others are for threads that open something
    /// meanwhile.
    private static func checkSpareDescriptors() throws(LaunchFailure) {
        var taken: [OwnedDescriptor] = []
        defer { for descriptor in taken { descriptor.close() } }
        for _ in 0..<24 {
            let eventfd = cal_eventfd()
            guard eventfd >= 0 else {
                throw LaunchFailure("too few descriptors are left to start a process", isOfDescriptors: true)
            }
            taken.append(OwnedDescriptor(eventfd))
        }
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
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
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
