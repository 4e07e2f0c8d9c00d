import CAlightLinux
import Glibc
import Synchronization

/// The processes that lost their `alight-launch`, which one of them may have killed.
///
/// `alight-launch` adopts all descendants of its program, and kills them. When it is gone, this process is the next to
/// adopt them, by PR_SET_CHILD_SUBREAPER.
package enum Orphans {
    /// The launchers that run or have not been reaped yet; nil while this process adopts nothing.
    private static let launchers = Mutex<Set<pid_t>?>(nil)
    /// How long to keep killing processes that do not exit, such as those that wait for a disk.
    private static let timeout = Duration.seconds(5)

    /// Makes this process adopt orphans from now on; must be called before the first launcher starts.
    ///
    /// From then on, all its children that cannot gain new privileges count as orphans, except launchers. So this is
    /// only for programs that start all their processes through `alight-launch`.
    package static func adopt() {
        guard cal_become_subreaper() == 0 else { return }
        launchers.withLock { if $0 == nil { $0 = [] } }
    }

    /// Starts a launcher, which is a child and not an orphan.
    static func excluding(_ start: () throws -> pid_t) throws {
        // Locked until its id is known.
        try launchers.withLock { launchers in
            let launcher = try start()
            launchers?.insert(launcher)
        }
    }

    /// Kills the orphans that a launcher has left; must be called once the launcher has been reaped.
    static func end(of launcher: pid_t) {
        launchers.withLock { _ = $0?.remove(launcher) }
        let deadline = ContinuousClock.now + timeout
        // The children of an orphan are adopted when it is dead.
        while killAll(), ContinuousClock.now < deadline { usleep(500) }
    }

    /// Kills all current orphans, and reaps those that are dead; returns whether there were any.
    private static func killAll() -> Bool {
        // No other thread reaps them, so their ids cannot be reused while this is locked.
        launchers.withLock { launchers in
            guard let launchers else { return false }
            var hasFound = false
            for child in Descendants.children(of: getpid())
            where !launchers.contains(child) && Descendants.hasNoNewPrivileges(child) {
                hasFound = true
                kill(child, SIGKILL)
                waitpid(child, nil, WNOHANG)
            }
            return hasFound
        }
    }
}
