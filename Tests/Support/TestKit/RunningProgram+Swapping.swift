package import System

extension RunningProgram {
    /// Starts a process that repeatedly renames each directory, puts a symbolic link in its place and renames it back,
    /// as fast as possible, until it is killed.
    ///
    /// - Parameters:
    ///   - directories: The directories to swap.
    ///   - outside: The target of the links.
    ///   - root: The working directory, which also receives the output.
    ///   - isOrdinary: Whether the process runs as an ordinary user.
    ///   - meanwhile: A line of Python that runs while a link is in place; it can use the name `outside`.
    ///   - pause: The number of seconds for which the directories stay in place between two rounds.
    /// - Returns: The process, which is killed when the object is deallocated.
    package static func swapping(
        _ directories: [PathBytes], for outside: PathBytes, in root: PathBytes, isOrdinary: Bool = false,
        meanwhile: String = "pass", pause: Double = 0
    ) -> RunningProgram {
        let script = """
            import os, sys, time
            outside, directories = sys.argv[1], sys.argv[2:]
            while True:
                for directory in directories:
                    try:
                        os.rename(directory, directory + ".real")
                        os.symlink(outside, directory)
                        \(meanwhile)
                    except OSError: pass
                    try:
                        os.unlink(directory)
                        os.rename(directory + ".real", directory)
                    except OSError: pass
                if \(pause): time.sleep(\(pause))
            """
        let words = ["/usr/bin/python3", "-Sc", script, "\(outside)"] + directories.map { "\($0)" }
        return RunningProgram(
            "/usr/bin/env", (isOrdinary ? ScenarioRunner.asOrdinaryUser : []) + words, in: root,
            output: root.appending("swapper"))
    }
}
