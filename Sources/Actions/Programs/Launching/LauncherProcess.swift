import CAlightLinux
import FileEvents
import Foundation
import Glibc
import Synchronization
import System

/// A running `alight-launch`, which runs one program after another.
///
/// It ends when nobody refers to it any more, and with it what it runs then.
final class LauncherProcess: Sendable {
    /// Our end of its control socket.
    let control: Int32
    let end: ProcessEnd
    private let process: Process
    var identifier: pid_t { process.processIdentifier }
    /// How many programs it has begun, which it counts itself: nobody has to be woken to be told.
    private let begun: Counter
    /// What that was when it got its last plan.
    private let begunBefore = Atomic<UInt32>(0)

    /// A number that the launcher counts up.
    private final class Counter: @unchecked Sendable {
        private let memory: UnsafeMutablePointer<UInt32>
        var value: UInt32 { cal_read_counter(memory) }

        init(_ memory: UnsafeMutablePointer<UInt32>) { self.memory = memory }

        deinit { cal_drop_counter(memory) }
    }

    /// Held while a launcher starts, and while the pipes of programs are made.
    ///
    /// Foundation would mistake descriptor 0 for its own socket when there is no descriptor left for that, and so many
    /// threads that make pipes at that moment can take all that were counted before.
    static let opening = NSLock()

    /// Starts one; the calling thread need not outlive it.
    init(_ launcher: PathBytes) throws(LaunchFailure) {
        guard let path = launcher.text else { throw LaunchFailure("the path of alight-launch is not UTF-8") }
        guard launcher.withCString({ access($0, X_OK) }) == 0 else {
            throw LaunchFailure("'\(launcher)' can't be run: \(String(cString: strerror(errno)))")
        }
        Self.opening.lock()
        defer { Self.opening.unlock() }
        var sockets: [Int32] = [-1, -1]
        let error = cal_socket_pair(&sockets, 10)
        guard error == 0 else {
            throw LaunchFailure("no socket: \(String(cString: strerror(error)))", isOfDescriptors: error == EMFILE)
        }
        let ours = OwnedDescriptor(sockets[0])
        let theirs = OwnedDescriptor(sockets[1])
        // Closed here and not by the last reference, which may go before `run()`.
        defer { theirs.close() }
        try Self.checkSpareDescriptors()
        var shared: Int32 = -1
        guard let memory = cal_make_counter(&shared) else {
            let error = errno
            let reason = "no shared memory: \(String(cString: strerror(error)))"
            throw LaunchFailure(reason, isOfDescriptors: error == EMFILE)
        }
        let counter = OwnedDescriptor(shared)
        defer { counter.close() }
        let begun = Counter(memory)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = []
        process.environment = [:]
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        process.standardInput = FileHandle(fileDescriptor: theirs.raw, closeOnDealloc: false)
        process.standardOutput = FileHandle(fileDescriptor: counter.raw, closeOnDealloc: false)
        process.standardError = FileHandle.nullDevice
        let end = ProcessEnd()
        process.terminationHandler = { process in
            Orphans.end(of: process.processIdentifier)
            end.set(status: process.terminationStatus, isSignal: process.terminationReason == .uncaughtSignal)
        }
        // The signal mask stays as it is: a SIGTERM that finds one thread of Alight open for it ends Alight
        // without a word. What is inherited doesn't matter, for the launcher begins with a mask of its own.
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
        self.begun = begun
        control = ours.taken()
    }

    deinit { close(control) }

    /// Has it run the program of a ``LaunchPlan``.
    ///
    /// - Parameters:
    ///   - plan: Its bytes.
    ///   - descriptors: Standard input, output and error, the working directory, and the ruleset of a sandbox.
    /// - Returns: 0, or the errno, after which it runs nothing any more.
    func run(_ plan: [UInt8], with descriptors: [Int32]) -> Int32 {
        begunBefore.store(begun.value, ordering: .relaxed)
        return cal_send_with_descriptors(control, plan, plan.count, descriptors, descriptors.count)
    }

    /// Whether it has begun the program of the last plan.
    var hasBegun: Bool { begun.value != begunBefore.load(ordering: .relaxed) }

    enum Order: UInt8 {
        /// Ask the program to end, and kill it after the grace.
        case terminate = 0x54
        /// Kill it at once.
        case kill = 0x4B
    }

    /// Tells it what to do with the program that it runs; nothing happens when that has ended.
    ///
    /// - Returns: False when it takes no orders.
    func tell(_ order: Order) -> Bool { cal_send_byte(control, order.rawValue) == 0 }

    /// Lets it go on when somebody has stopped it; its program is left alone.
    ///
    /// - Returns: Whether somebody had.
    func resumeItself() -> Bool {
        guard Descendants.state(of: identifier) == "T" else { return false }
        return cal_signal_child(identifier, SIGCONT) == 0
    }

    /// Lets it go on when somebody has stopped it, or its child that waits for the plan.
    func resume() {
        _ = cal_signal_child(identifier, SIGCONT)
        for process in Descendants.of(identifier) { Glibc.kill(process, SIGCONT) }
    }

    /// Kills the launcher itself, and what descends from it.
    func kill() {
        // Orphans become its children as long as it lives. Who forks faster than this is at least no more its child.
        for _ in 0..<8 {
            let processes = Descendants.of(identifier)
            for process in processes { Glibc.kill(process, SIGKILL) }
            if processes.isEmpty { break }
        }
        _ = cal_signal_child(identifier, SIGKILL)
    }

    /// Makes sure that Foundation finds descriptors for its own use.
    ///
    /// `Process.run()` does not look whether its socketpair(2) succeeded: it takes descriptor 0 for it then, and
    /// no program's end is ever noticed again. It needs two; the others are for threads that open something meanwhile.
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

/// What descends from a process, as /proc tells it.
enum Descendants {
    /// Without dead ones; empty where the kernel doesn't tell.
    static func of(_ process: pid_t) -> [pid_t] {
        var found: [pid_t] = []
        var parents = [process]
        while let parent = parents.popLast() {
            let children = children(of: parent)
            found += children.filter { !isDead($0) }
            parents += children
        }
        return found
    }

    /// The children of all threads, with dead ones that have not been reaped.
    static func children(of process: pid_t) -> [pid_t] {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        return threads.flatMap { thread in
            let path = "/proc/\(process)/task/\(thread)/children"
            let list = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
            return list.split(separator: " ").compactMap { pid_t($0) }
        }
    }

    /// Whether it has given up new privileges, as all that descends from a launcher has, and keeps to that.
    static func hasNoNewPrivileges(_ process: pid_t) -> Bool {
        let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        return status?.contains("\nNoNewPrivs:\t1\n") ?? false
    }

    private static func isDead(_ process: pid_t) -> Bool {
        guard let state = state(of: process) else { return true }
        return state == "Z"
    }

    /// The letter that proc_pid_stat(5) has for its state; nil when it is gone.
    static func state(of process: pid_t) -> Character? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return nil }
        return text[(text.lastIndex(of: ")") ?? text.startIndex)...].dropFirst(2).first
    }
}

/// How a process ended, handed over by the thread that Foundation reaps it on.
final class ProcessEnd: Sendable {
    private let status = Mutex<(status: Int32, isSignal: Bool)?>(nil)
    private let isKnown = DispatchSemaphore(value: 0)

    func set(status: Int32, isSignal: Bool) {
        self.status.withLock { $0 = (status, isSignal) }
        isKnown.signal()
    }

    /// Waits for the end; nil when it is not known in time.
    func wait(_ seconds: Double) -> (status: Int32, isSignal: Bool)? {
        if let known = status.withLock({ $0 }) { return known }
        _ = isKnown.wait(timeout: .now() + seconds)
        return status.withLock { $0 }
    }
}
