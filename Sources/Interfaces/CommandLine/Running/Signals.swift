import FileObserving
import Glibc
import Synchronization
import System

/// The controlling terminal of the program.
///
/// When it is closed, the program stops.
struct Terminal: Sendable {
    /// Whether the program had a terminal at its start and was not started with nohup(1).
    private let mayHangUp = !Signals.isIgnored(SIGHUP) && Terminal.isOpen

    /// Whether the terminal is gone.
    ///
    /// A SIGHUP is then its hangup, sent by the kernel or forwarded by a shell.
    var hasHungUp: Bool { mayHangUp && !Self.isOpen }

    private static var isOpen: Bool {
        let descriptor = open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
        if descriptor >= 0 { close(descriptor) }
        return descriptor >= 0
    }
}

/// The signals that the program handles, received by a dedicated thread.
enum Signals {
    /// Blocks these signals for all threads that are started later.
    ///
    /// Call it before anything else.
    ///
    /// Writing to a pipe whose reader is gone returns an error instead of terminating the program. This uses a handler
    /// rather than SIG_IGN, because child processes inherit SIG_IGN.
    static func prepare() {
        signal(SIGPIPE) { _ in }
        // The same for writes beyond the file size limit.
        signal(SIGXFSZ) { _ in }
        var set = answered
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Restores the default action of the signals, for commands that have nothing to finish.
    ///
    /// SIGUSR1 stays blocked: it is meant for a running instance, and must not terminate other commands.
    static func useDefaultActions() {
        var set = mask([SIGTERM, SIGINT, SIGHUP])
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
    }

    private static var answered: sigset_t { mask([SIGTERM, SIGINT, SIGHUP, SIGUSR1]) }

    private static func mask(_ numbers: [Int32]) -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in numbers { sigaddset(&set, number) }
        return set
    }

    /// Returns whether the program was started with the signal ignored, as nohup(1) does with SIGHUP.
    static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        // SIG_IGN is the address 1, defined by a macro that is not imported into Swift. The cast only reads the
        // address of a C function pointer as an integer of the same size; the pointer is never called.
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }

    /// Calls the closure for each handled signal, on a dedicated thread, indefinitely.
    ///
    /// - Parameters:
    ///   - reloads: Whether SIGHUP requests a reload, which is handled even under nohup(1).
    ///   - body: The handler.
    /// - Throws: An `ObservationError` when the thread cannot be started.
    static func forEach(
        reloads: Bool = false, _ body: @escaping @Sendable (Int32) -> Void
    ) throws(ObservationError) {
        let thread = WorkerThread(name: "alight-signals") {
            var set = answered
            // An ignored signal that is blocked stays pending.
            if !reloads, isIgnored(SIGHUP) { sigdelset(&set, SIGHUP) }
            while true {
                var number: Int32 = 0
                if sigwait(&set, &number) == 0 { body(number) }
            }
        }
        if thread == nil { throw .noThread }
    }
}

/// Counts the requests to stop.
final class StopCount: Sendable {
    private let stops = Atomic(0)

    func next() -> Int { stops.add(1, ordering: .relaxed).newValue }

    var count: Int { stops.load(ordering: .relaxed) }
}
