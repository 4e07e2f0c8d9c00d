import CAlightLinux
import Foundation
import Glibc
import Synchronization
import System

/// The process that forks launchers, and a second one that takes its place when it dies.
///
/// The first is the only process that Foundation starts, when few descriptors are open: `Process.run()` crashes with
/// more than some 1,300. Forking is also faster, and the launchers share the memory of the spawner. When both spawners
/// have died, so have the launchers in most cases, and their descriptors are closed.
final class Spawner: Sendable {
    private struct Connection: Sendable {
        let socket: OpenFile
        let process: pid_t
        let counters: StartCounters
        /// Whether Foundation reaps the process.
        let isReaped: Bool
    }

    private enum Kind: UInt32 { case launcher, spawner }

    private let path: PathBytes
    /// The one in use comes first.
    private let connections = Mutex<[Connection]>([])
    /// The number of open descriptors from which Foundation starts nothing any more.
    private static let mostDescriptors = 1000

    /// - Parameter path: The absolute path of `alight-launch`.
    init(_ path: PathBytes) { self.path = path }

    deinit { end() }

    /// Makes the spawners exit; the next launcher needs another one.
    func end() {
        connections.withLock { for connection in exchange(&$0, with: []) { Self.end(connection) } }
    }

    /// The process IDs of the spawners, the one in use first.
    var processes: [pid_t] { connections.withLock { $0.map(\.process) } }

    /// Starts a launcher; blocks for as long as that takes.
    func makeLauncher() throws(LaunchFailure) -> LauncherProcess {
        try connections.withLock { connections throws(LaunchFailure) in
            var failure = LaunchFailure(reason: "alight-launch exited before the program started")
            for _ in 0..<Self.mostTries {
                if connections.isEmpty { connections = [try start()] }
                do throws(LaunchFailure) {
                    let (counter, connection) = (try connections[0].counters.take(), connections[0])
                    let (process, socket) = try Self.ask(connection, for: .launcher, counter)
                    let launcher = LauncherProcess(process, socket, counter)
                    if connections.count == 1 { addSpare(to: &connections) }
                    return launcher
                } catch {
                    guard error.isOfSpawner else { throw error }
                    failure = error
                    Self.end(connections.removeFirst())
                }
            }
            throw failure
        }
    }

    private static let mostTries = 3

    private func addSpare(to connections: inout [Connection]) {
        guard let (process, socket) = try? Self.ask(connections[0], for: .spawner, nil) else { return }
        connections.append(
            Connection(socket: OpenFile(socket), process: process, counters: connections[0].counters, isReaped: false))
    }

    private static func ask(
        _ connection: Connection, for kind: Kind, _ counter: StartCounters.Counter?
    ) throws(LaunchFailure) -> (process: pid_t, socket: Int32) {
        let request = [kind.rawValue, UInt32(counter?.number ?? 0)]
        var process: pid_t = 0
        var socket: Int32 = -1
        var error = request.withUnsafeBytes {
            cal_send_with_descriptors(connection.socket.descriptor, $0.baseAddress, $0.count, nil, 0, 1)
        }
        if error == 0 {
            error = cal_receive_with_descriptor(connection.socket.descriptor, &process, 4, &socket)
        }
        guard error == 0 else {
            let reason = "alight-launch does not answer: \(SystemError(errno: error))"
            throw LaunchFailure(reason: reason, isOfSpawner: true)
        }
        guard process > 0 else {
            throw LaunchFailure(reason: "no launcher can be started: \(SystemError(errno: -process))", errno: -process)
        }
        guard socket >= 0 else {
            // It exits, because the other end of its socket is closed.
            LauncherProcess.reap(process) { _ in }
            throw LaunchFailure(reason: "too few descriptors are left to start a process", isOfDescriptors: true)
        }
        return (process, socket)
    }

    private static func end(_ connection: Connection) {
        // Also one that is stopped.
        _ = cal_signal_child(connection.process, SIGKILL)
        if !connection.isReaped { LauncherProcess.reap(connection.process) { _ in } }
    }

    // MARK: - Foundation

    /// Starts a spawner.
    ///
    /// `Process.run()` gives the thread that calls it a run loop, with three descriptors that stay open as long as the
    /// thread lives, so a thread of its own calls it.
    private func start() throws(LaunchFailure) -> Connection {
        let started = Request<Result<Connection, LaunchFailure>>()
        let thread = WorkerThread(name: "alight-start") { [path] in
            started.end(Result { () throws(LaunchFailure) in try Self.run(path) })
        }
        guard let thread, EventLoop.shared.start() else { throw LaunchFailure(reason: "no thread can be started") }
        thread.join()
        guard let result = started.wait() else { throw LaunchFailure(reason: "no launcher was started") }
        return try result.get()
    }

    private static func run(_ path: PathBytes) throws(LaunchFailure) -> Connection {
        guard let text = path.text else { throw LaunchFailure(reason: "the path of alight-launch is not UTF-8") }
        guard path.withCString({ access($0, X_OK) }) == 0 else {
            throw LaunchFailure(reason: "'\(path)' can't be run: \(SystemError(errno: errno))")
        }
        var sockets: [Int32] = [-1, -1]
        let error = cal_socket_pair(&sockets, 10)
        guard error == 0 else {
            throw LaunchFailure(reason: "no socket: \(SystemError(errno: error))", isOfDescriptors: error == EMFILE)
        }
        let (ours, theirs) = (OpenFile(sockets[0]), OpenFile(sockets[1]))
        try checkDescriptors()
        let (counters, file) = try StartCounters.make()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: text)
        process.arguments = ["spawn"]
        process.environment = [:]
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        process.standardInput = FileHandle(fileDescriptor: theirs.descriptor, closeOnDealloc: false)
        process.standardOutput = FileHandle(fileDescriptor: file.descriptor, closeOnDealloc: false)
        process.standardError = FileHandle.nullDevice
        // The signal mask stays unchanged: a SIGTERM that finds it unblocked in one thread of Alight terminates Alight
        // without a message. The inherited mask does not matter, because the spawner sets its own.
        do {
            defer { withExtendedLifetime((theirs, file)) {} }
            try process.run()
        } catch {
            throw LaunchFailure(reason: "'\(path)' can't be run: \(error.localizedDescription)")
        }
        return Connection(
            socket: ours, process: process.processIdentifier, counters: counters, isReaped: true)
    }

    /// Checks that Foundation has enough descriptors for its own use, and that there are not too many.
    ///
    /// `Process.run()` does not check whether its socketpair(2) succeeded: it then uses descriptor 0 instead, and no
    /// exit is noticed any more. It needs two descriptors; the others are for threads that open something meanwhile.
    private static func checkDescriptors() throws(LaunchFailure) {
        var taken: [OwnedDescriptor] = []
        defer { for descriptor in taken { descriptor.close() } }
        for _ in 0..<24 {
            let eventfd = cal_eventfd()
            guard eventfd >= 0 else {
                throw LaunchFailure(reason: "too few descriptors are left to start a process", isOfDescriptors: true)
            }
            taken.append(OwnedDescriptor(eventfd))
        }
        let open = (try? KernelFileSystem().names(following: "/proc/self/fd").count) ?? 0
        guard open <= mostDescriptors else {
            throw LaunchFailure(reason: "too many descriptors are open to start a process", isOfDescriptors: true)
        }
    }
}

/// The counters of the programs that launchers have started, in memory that they share with Alight.
///
/// Each launcher counts its programs itself, so no process is woken for that.
final class StartCounters: @unchecked Sendable {
    /// The counter of a launcher, which another one may get afterwards.
    final class Counter: Sendable {
        let number: Int
        private let counters: StartCounters

        init(_ number: Int, _ counters: StartCounters) { (self.number, self.counters) = (number, counters) }

        deinit { counters.unused.withLock { $0.append(number) } }

        var value: UInt32 { cal_read_counter(counters.memory + number) }
    }

    // Alight only reads it, by atomic operations of C; it stays mapped as long as this object lives.
    private let memory: UnsafeMutablePointer<UInt32>
    /// The numbers that were used before, and after them the lowest one that was not.
    private let unused = Mutex([0])

    private init(_ memory: UnsafeMutablePointer<UInt32>) { self.memory = memory }

    deinit { cal_drop_counters(memory) }

    /// Creates the memory, and the file by which others reach it.
    static func make() throws(LaunchFailure) -> (StartCounters, file: OpenFile) {
        var file: Int32 = -1
        guard let memory = cal_make_counters(&file) else {
            let error = errno
            throw LaunchFailure(
                reason: "no shared memory: \(SystemError(errno: error))", isOfDescriptors: error == EMFILE)
        }
        return (StartCounters(memory), OpenFile(file))
    }

    func take() throws(LaunchFailure) -> Counter {
        let number = unused.withLock { unused in
            let number = unused.removeLast()
            if unused.isEmpty { unused = [number + 1] }
            return number
        }
        guard number < Int(CAL_COUNTERS) else {
            throw LaunchFailure(reason: "too many programs run at the same time")
        }
        return Counter(number, self)
    }
}
