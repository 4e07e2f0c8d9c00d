import FileEvents
package import System

extension RunningProgram {
    /// Starts a process that renames each directory, puts a symbolic link in its place, and renames it back, as fast as it
    /// can, until it is killed.
    ///
    /// - Parameters:
    ///   - directories: What it swaps.
    ///   - outside: What the links lead to.
    ///   - root: Where it works, and its output is kept.
    ///   - isOrdinary: Whether it belongs to an ordinary user.
    ///   - meanwhile: A line of Python for the moment in which a link is there; `outside` is a name in it.
    ///   - pause: How many seconds the directories stay between two turns.
    /// - Returns: The process, which is killed when nobody holds it any more.
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
