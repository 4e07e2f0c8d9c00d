import Glibc

/// The parts of the system without which no command can work, checked before anything depends on them.
enum StartCheck {
    /// Foundation can't start a program below that, however few are open.
    private static let neededDescriptors: rlim_t = 256

    /// Ends the program with an error if something is missing.
    static func run() {
        // The Swift runtime reads the command line there; without it, each command would look like none.
        if access("/proc/self/cmdline", R_OK) != 0 {
            fail(
                "cannot read '/proc/self/cmdline', which has the command line",
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
            help: "raise it: 'ulimit -n 1024' in a shell, 'LimitNOFILE=1024' in a unit of systemd")
    }

    private static func fail(_ message: String, help: String) {
        Output.error.write("error: \(message)\n    help: \(help)")
        Glibc.exit(ExitStatus.runtimeError.rawValue)
    }
}
