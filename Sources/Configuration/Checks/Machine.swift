import Glibc
package import System

extension RuleLoader {
    /// The limits that the machine and Alight's own user set for the programs it starts.
    package struct Machine: Sendable {
        /// Whether Alight runs as root.
        package var isRoot = true
        /// The lowest nice value that programs can be given.
        package var leastNice = -20
        /// The ABI version of Landlock; a negative errno if Landlock is not available.
        package var landlock: Int32 = 4
        package var canShutOffNetwork = true
        package var accounts = Accounts()

        /// Creates a machine without limits.
        package init() {}

        /// Creates a description of this machine and the current user.
        package init(landlock: Int32, canShutOffNetwork: Bool) {
            self.landlock = landlock
            self.canShutOffNetwork = canShutOffNetwork
            isRoot = geteuid() == 0
            leastNice = isRoot ? -20 : Self.leastNiceOfOthers
        }

        /// The lowest nice value of a process without privileges: its own, or that of RLIMIT_NICE, which counts down
        /// from 20.
        private static var leastNiceOfOthers: Int {
            let own = Int(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0))
            var limit = rlimit()
            guard getrlimit(__rlimit_resource_t(__RLIMIT_NICE.rawValue), &limit) == 0 else { return own }
            return min(own, 20 - Int(min(limit.rlim_cur, 40)))
        }
    }
}
