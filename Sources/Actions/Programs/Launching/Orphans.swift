import CAlightLinux
import Glibc
import Synchronization

/// The processes that lost their `alight-launch`, which one of them may have killed.
///
/// `alight-launch` adopts all that descends from its program, and ends it. When it is gone, this process is the next to
/// adopt that, by PR_SET_CHILD_SUBREAPER.
package enum Orphans {
    /// The launchers that run, or have not been reaped yet; nil while this process adopts nothing.
    private static let launchers = Mutex<Set<pid_t>?>(nil)
    /// For how long processes are killed that don't go, such as those that wait for a disk.
    private static let timeout = Duration.seconds(5)

    /// Has this process adopt them from now on; to be called before the first launcher starts.
    ///
    /// All its children that have lost their right to new privileges are taken for orphans then, but for launchers. So it
    /// is for programs that start processes by `alight-launch` alone.
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

    /// Ends the orphans that a launcher has left; to be called when it has been reaped.
    static func end(of launcher: pid_t) {
        launchers.withLock { _ = $0?.remove(launcher) }
        let deadline = ContinuousClock.now + timeout
        // What descends from one is adopted when that is dead.
        while killAll(), ContinuousClock.now < deadline { usleep(500) }
    }

    /// Kills all that there are now, and reaps those that are dead; whether there were any.
    private static func killAll() -> Bool {
        // Nobody else reaps them, so while this is locked their ids can't pass to others.
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
