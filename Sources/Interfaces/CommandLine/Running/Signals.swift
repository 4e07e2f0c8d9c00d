import Glibc
import System

/// The controlling terminal of the program, whose end is a stop.
struct Terminal: Sendable {
    /// Whether the program had one at its start and is not run by nohup(1).
    private let mayHangUp = !Signals.isIgnored(SIGHUP) && Terminal.isOpen

    /// Whether it is gone: a SIGHUP is then its hangup, sent by the kernel or passed on by a shell.
    var hasHungUp: Bool { mayHangUp && !Self.isOpen }

    private static var isOpen: Bool {
        let descriptor = open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
        if descriptor >= 0 { close(descriptor) }
        return descriptor >= 0
    }
}

/// The signals that the program answers, taken by a thread of their own.
enum Signals {
    /// Blocks these signals for all threads that will be started.
    ///
    /// Call it first of all.
    ///
    /// A pipe whose reader has gone gives an error instead of the end of the
    /// program; with a handler rather than SIG_IGN, because children inherit that.
    static func prepare() {
        signal(SIGPIPE) { _ in }
        // Beyond the limit of a file's size likewise.
        signal(SIGXFSZ) { _ in }
        var set = answered
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Lets a signal end the program as usual, for commands that have nothing to finish.
    ///
    /// SIGUSR1 stays blocked: it is for an Alight that runs, and does no harm to others.
    static func endUsually() {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&set, number) }
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
    }

    private static var answered: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGTERM, SIGINT, SIGHUP, SIGUSR1] { sigaddset(&set, number) }
        return set
    }

    /// Returns whether the program was started with the signal ignored, as nohup(1) does with SIGHUP.
    static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        // SIG_IGN is the address 1, by a macro that Swift does not see. The cast only reads the address of a
        // C function pointer as a number of the same size, and the pointer is never called.
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }

    /// Calls the closure for each answered signal, on a thread of its own, for ever.
    ///
    /// - Parameters:
    ///   - reloads: Whether SIGHUP is a request to reload, which is answered even under nohup(1).
    ///   - body: What to do.
    /// - Returns: Whether the system had room for the thread; without it no signal is answered.
    static func forEach(reloads: Bool = false, _ body: @escaping @Sendable (Int32) -> Void) -> Bool {
        let thread = WorkerThread(name: "alight-signals") {
            var set = answered
            // Ignored but blocked, it stays pending.
            if !reloads, isIgnored(SIGHUP) { sigdelset(&set, SIGHUP) }
            while true {
                var number: Int32 = 0
                if sigwait(&set, &number) == 0 { body(number) }
            }
        }
        return thread != nil
    }
}
