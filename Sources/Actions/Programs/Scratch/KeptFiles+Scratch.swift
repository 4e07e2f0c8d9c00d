import ActionAPI
package import Rules
package import System

extension KeptFiles {
    /// Moves a scratch directory with regular files to the files of a job.
    ///
    /// - Parameters:
    ///   - scratch: The directory.
    ///   - job: The job.
    ///   - launcher: Starts mv(1), since the state directory is mostly on another file system.
    /// - Returns: Where the files are now, and why they could not be moved; nil if there are none.
    package func take(
        _ scratch: PathBytes, of job: JobID, _ launcher: ProcessLauncher
    ) -> (place: PathBytes, problem: String?)? {
        guard !Self.regularFiles(in: scratch).isEmpty else { return nil }
        do throws(SystemError) {
            try makeDirectory()
        } catch {
            return (scratch, "cannot create '\(directory)': \(error)")
        }
        let place = newDirectory(of: job.description)
        let move = Command(
            executable: "/bin/mv", arguments: [Array("-T".utf8), Array("--".utf8), scratch.bytes, place.bytes],
            environment: [], timeout: .seconds(24 * 3_600))
        let ended = launcher.run(move, stop: StopSignal())
        guard ended.termination == .exited(status: 0) else { return (scratch, ended.lastLine ?? "mv failed") }
        return (place, nil)
    }
}
