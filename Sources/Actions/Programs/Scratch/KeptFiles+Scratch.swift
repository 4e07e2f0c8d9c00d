package import Rules
package import System

extension KeptFiles {
    /// Where the files are now, and why they could not be moved.
    package typealias Place = (place: PathBytes, problem: String?)

    /// Moves a scratch directory with regular files to the files of a job; blocks meanwhile.
    ///
    /// - Parameters:
    ///   - scratch: The directory.
    ///   - job: The job.
    ///   - launcher: Starts mv(1), since the state directory is mostly on another file system.
    /// - Returns: Where the files are now; nil if there are none.
    package func take(_ scratch: PathBytes, of job: JobID, _ launcher: ProcessLauncher) -> Place? {
        guard !Self.regularFiles(in: scratch).isEmpty else { return nil }
        do throws(SystemError) {
            try makeDirectory()
        } catch {
            return (scratch, "cannot create '\(directory)': \(error)")
        }
        let place = newDirectory(of: job.description)
        let arguments = [Array("-T".utf8), Array("--".utf8), scratch.bytes, place.bytes]
        let move = Command(executable: "/bin/mv", arguments: arguments, timeout: .seconds(24 * 3_600))
        let ended = launcher.runBlocking(move)
        return ended.termination == .exited(status: 0) ? (place, nil) : (scratch, ended.lastLine ?? "mv failed")
    }
}
