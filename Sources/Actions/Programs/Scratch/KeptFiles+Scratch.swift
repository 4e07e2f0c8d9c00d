import ActionAPI
package import Rules
package import System

extension KeptFiles {
    /// Where the files are now, and why they could not be moved.
    package typealias Place = (place: PathBytes, problem: String?)

    /// Moves a scratch directory with regular files to the files of a job.
    ///
    /// - Parameters:
    ///   - scratch: The directory.
    ///   - job: The job.
    ///   - launcher: Starts mv(1), since the state directory is mostly on another file system.
    /// - Returns: Where the files are now; nil if there are none.
    package func take(_ scratch: PathBytes, of job: JobID, _ launcher: ProcessLauncher) async -> Place? {
        guard !Self.regularFiles(in: scratch).isEmpty else { return nil }
        return switch prepare(for: job) {
        case .success(let place): moved(await launcher.run(move(scratch, place), stop: StopSignal()), scratch, place)
        case .failure(let error): (scratch, "cannot create '\(directory)': \(error)")
        }
    }

    /// Does the same, and blocks meanwhile.
    package func takeBlocking(_ scratch: PathBytes, of job: JobID, _ launcher: ProcessLauncher) -> Place? {
        guard !Self.regularFiles(in: scratch).isEmpty else { return nil }
        return switch prepare(for: job) {
        case .success(let place): moved(launcher.runBlocking(move(scratch, place)), scratch, place)
        case .failure(let error): (scratch, "cannot create '\(directory)': \(error)")
        }
    }

    private func prepare(for job: JobID) -> Result<PathBytes, SystemError> {
        Result { () throws(SystemError) in
            try makeDirectory()
            return newDirectory(of: job.description)
        }
    }

    private func move(_ scratch: PathBytes, _ place: PathBytes) -> Command {
        Command(
            executable: "/bin/mv", arguments: [Array("-T".utf8), Array("--".utf8), scratch.bytes, place.bytes],
            environment: [], timeout: .seconds(24 * 3_600))
    }

    private func moved(_ ended: ProgramResult, _ scratch: PathBytes, _ place: PathBytes) -> Place {
        ended.termination == .exited(status: 0) ? (place, nil) : (scratch, ended.lastLine ?? "mv failed")
    }
}
