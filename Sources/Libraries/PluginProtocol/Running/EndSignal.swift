#if canImport(Musl)
import Musl
#else
import Glibc
#endif
import Synchronization

/// Takes SIGTERM.
///
/// By a handler that writes to a pipe, and not by blocking the signal: programs
/// that the plugin starts would inherit that, and obey no SIGTERM any more.
enum EndSignal {
    /// How long a plugin may clean up; Alight kills it after 10 s, if its rule doesn't say otherwise.
    static let patience: Int32 = 5_000

    /// The writing end of the pipe, for the handler.
    private static let pipeEnd = Atomic<Int32>(-1)

    /// Calls `act` when SIGTERM comes; the process dies of it later, or at the next one.
    static func take(_ act: @escaping @Sendable () -> Void) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let reading = ends[0]
        pipeEnd.store(ends[1], ordering: .releasing)
        OwnThread.start {
            wait(for: reading, -1)
            act()
            wait(for: reading, patience)
            signal(SIGTERM, SIG_DFL)
            kill(getpid(), SIGTERM)
        }
        signal(SIGTERM) { _ in
            let error = errno
            var byte: UInt8 = 1
            _ = write(EndSignal.pipeEnd.load(ordering: .relaxed), &byte, 1)
            errno = error
        }
    }

    private static func wait(for descriptor: Int32, _ milliseconds: Int32) {
        var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while poll(&waited, 1, milliseconds) < 0, errno == EINTR {}
        var byte: UInt8 = 0
        if waited.revents != 0 { _ = read(descriptor, &byte, 1) }
    }
}
