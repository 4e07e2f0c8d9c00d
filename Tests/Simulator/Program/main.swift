import Glibc

// The order of Swift's sets and dictionaries must not differ between runs.
if getenv("SWIFT_DETERMINISTIC_HASHING") == nil {
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
    execv("/proc/self/exe", CommandLine.unsafeArgv)
    perror("simulator: execv")
    exit(1)
}
exit(Simulator(CommandLine.arguments.dropFirst()).run())
