import Dispatch
import Synchronization

#if canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Handles SIGTERM.
///
/// It uses a handler that writes to a pipe. A blocked signal mask would be inherited
/// by the programs that the plugin starts, which would then ignore SIGTERM.
enum EndSignal {
    /// The cleanup time of a plugin in milliseconds; Alight kills it after 10 s, unless its rule sets another time.
    static let cleanupTime: Int32 = 5_000

    /// The write end of the pipe, for the handler.
    private static let pipeEnd = Atomic<Int32>(-1)

    /// Calls `act` on SIGTERM; the signal terminates the process after `cleanupTime`, or when it arrives again.
    static func handle(_ act: @escaping @Sendable () -> Void) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let reading = ends[0]
        pipeEnd.store(ends[1], ordering: .releasing)
        DispatchQueue(label: "alight-end").async {
            wait(for: reading, -1)
            act()
            wait(for: reading, cleanupTime)
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
