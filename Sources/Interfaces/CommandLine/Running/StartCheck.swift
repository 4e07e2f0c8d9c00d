import Glibc

/// Checks for the parts of the system that every command requires, before anything depends on them.
enum StartCheck {
    /// The minimum limit of open files: below it, Foundation cannot start a program, regardless of how many are open.
    private static let neededDescriptors: rlim_t = 256

    /// Exits the program with an error if something is missing.
    static func run() {
        // The Swift runtime reads the command line from /proc; without it, there would be no arguments.
        if access("/proc/self/cmdline", R_OK) != 0 {
            fail(
                "cannot read '/proc/self/cmdline', which contains the command line",
                help: "mount /proc: mount -t proc proc /proc")
        }
        var limit = rlimit()
        let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(kind, &limit) == 0, limit.rlim_cur < neededDescriptors else { return }
        let found = limit.rlim_cur
        limit.rlim_cur = neededDescriptors
        guard limit.rlim_max < neededDescriptors || setrlimit(kind, &limit) != 0 else { return }
        fail(
            "the limit of open files is \(found), and \(neededDescriptors) are needed",
            help: "raise it: 'ulimit -n 1024' in a shell, 'LimitNOFILE=1024' in a systemd unit")
    }

    private static func fail(_ message: String, help: String) {
        Output.error.write("error: \(message)\n    help: \(help)")
        Glibc.exit(ExitStatus.runtimeError.rawValue)
    }
}
