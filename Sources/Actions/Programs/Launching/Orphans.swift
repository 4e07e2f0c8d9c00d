import CAlightLinux
import Glibc
import Synchronization
import System

/// The processes that lost their `alight-launch`, which one of them may have killed.
///
/// `alight-launch` adopts all descendants of its program, and kills them. When it is gone, this process is the next to
/// adopt them, by PR_SET_CHILD_SUBREAPER.
package enum Orphans {
    private static let isAdopting = Atomic(false)
    /// How long to keep killing processes that do not exit, such as those that wait for a disk.
    private static let timeout = Duration.seconds(5)

    /// Makes this process adopt orphans from now on; must be called before the first launcher starts.
    ///
    /// From then on, all its children in other sessions that cannot gain new privileges count as orphans: programs have
    /// sessions of their own, and launchers that of this process. So this is only for programs that start all their
    /// processes through `alight-launch`.
    package static func adopt() {
        if cal_become_subreaper() == 0 { isAdopting.store(true, ordering: .relaxed) }
    }

    /// Kills the orphans of a launcher that has been reaped, and then calls the closure; does not block.
    static func killAll(then body: @escaping @Sendable () -> Void) {
        guard isAdopting.load(ordering: .relaxed) else { return body() }
        let thread = WorkerThread(name: "alight-orphans") {
            let deadline = ContinuousClock.now + timeout
            // The children of an orphan are adopted when it is dead.
            while killOnce(), ContinuousClock.now < deadline { usleep(500) }
            body()
        }
        if let thread { thread.detach() } else { body() }
    }

    /// Kills all current orphans, and reaps those that are dead; returns whether there were any.
    private static func killOnce() -> Bool {
        let session = getsid(0)
        var hasFound = false
        for child in Descendants.children(of: getpid())
        where getsid(child) != session && Descendants.hasNoNewPrivileges(child) {
            hasFound = true
            kill(child, SIGKILL)
            waitpid(child, nil, WNOHANG)
        }
        return hasFound
    }
}
