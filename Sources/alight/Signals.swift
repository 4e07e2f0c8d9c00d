import FileWatching
import Glibc

/// The terminal in which the program was started.
enum Terminal {
    private static let wasThere = isatty(STDERR_FILENO) == 1 || isatty(STDIN_FILENO) == 1

    /// Notes whether there is one.
    static func note() { _ = wasThere }

    /// Whether it was closed: what is read from it and written to it fails from then on.
    static var hasHungUp: Bool { wasThere && isatty(STDERR_FILENO) == 0 && isatty(STDIN_FILENO) == 0 }
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
        var set = answered
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Lets a signal end the program as usual, for commands that have nothing to finish.
    ///
    /// SIGUSR1 and SIGUSR2 stay blocked: they are for an Alight that runs, and do no harm to others.
    static func endUsually() {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&set, number) }
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
    }

    private static var answered: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGTERM, SIGINT, SIGUSR1, SIGUSR2] { sigaddset(&set, number) }
        // nohup(1) ignores it for us; blocked and waited for, it would come all the same.
        if !isIgnored(SIGHUP) { sigaddset(&set, SIGHUP) }
        return set
    }

    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        // SIG_IGN is the address 1, by a macro that Swift does not see. The cast only reads the address of a
        // C function pointer as a number of the same size, and the pointer is never called.
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }

    /// Calls the closure for each answered signal, on a thread of its own, for ever.
    ///
    /// - Parameter body: What to do.
    /// - Returns: Whether the system had room for the thread; without it no signal is answered.
    static func forEach(_ body: @escaping @Sendable (Int32) -> Void) -> Bool {
        let thread = WorkerThread(name: "alight-signals") {
            var set = answered
            while true {
                var number: Int32 = 0
                if sigwait(&set, &number) == 0 { body(number) }
            }
        }
        return thread != nil
    }
}
