import Configuration
import ControlAPI
import Engine
import FileActions
import FileEvents
import Glibc
import Programs
import Records
import Rules
import Running
import Storage
import System

/// The process that may change a journal: the running instance, or this command while no instance uses the journal.
enum JournalOwner {
    case instance(ControlClient)
    case command(DiskStore)

    /// The time to wait for an instance that is starting or stopping.
    private static let timeout = Duration.seconds(2)

    /// Opens the journal, or finds the control socket of the instance that uses it.
    ///
    /// - Parameters:
    ///   - path: The journal.
    ///   - isBrief: Whether it is closed again at once, so that other commands wait for that.
    /// - Returns: The current owner of the journal.
    /// - Throws: The problem when neither is possible.
    static func find(_ path: PathBytes, isBrief: Bool) throws -> JournalOwner {
        let deadline = ContinuousClock.now + timeout
        while true {
            let problem: JournalError
            do throws(JournalError) {
                let journal = try DiskStore(at: path, now: DiskProbe.now(), isBrief: isBrief, keeping: .unlimited)
                if !isBrief { OpenJournal.clear(path, journal) }
                return .command(journal)
            } catch {
                problem = error
            }
            if case .noAccess = problem {
                throw Problem(problem.description, help: "run this command as the journal's user, or as root")
            }
            guard case .held = problem else { throw problem }
            if let socket = DiskStore.control(of: path) {
                let descriptor = ControlSocket.connected(to: socket, timeout: 0)
                if descriptor >= 0 { close(descriptor) }
                // If nothing listens, the instance is stopping. The client reports any other error.
                let isStopping = [-ENOENT, -ENOTDIR, -ECONNREFUSED].contains(descriptor)
                if !isStopping { return .instance(ControlClient(path: socket)) }
            }
            guard ContinuousClock.now < deadline else {
                throw Problem(
                    problem.description,
                    help: "it has no control socket: wait until it exits or stop it, and start 'alight run' without "
                        + "'control: false' and '--no-control'")
            }
        }
    }

    /// Carries out a command, and closes the journal.
    ///
    /// - Parameters:
    ///   - command: The command.
    ///   - rules: The rules that must not receive events for undone changes; only used without an instance.
    /// - Throws: The problem when it cannot be carried out or recorded.
    func carryOut(_ command: JobCommand, rules: () -> Ruleset = { Ruleset([]) }) throws {
        switch self {
        case .instance(let client): _ = try client.ask(command)
        case .command(let journal):
            let error = Engine.carryOut(command, rules(), in: journal, undo: Undoing.undo)
            if let error = journal.close(at: DiskProbe.now()) ?? error { throw error }
        }
    }
}

/// The journal of a run: a file, or in memory.
struct OpenJournal {
    let journal: DiskStore
    /// The path of the file; nil for a journal in memory.
    let file: PathBytes?
    /// The directories of the files that interrupted programs had left, and that have been kept.
    let kept: [PathBytes]

    /// Opens the journal, or creates it.
    ///
    /// - Parameters:
    ///   - location: The location of the journal.
    ///   - retention: The limits for finished jobs.
    ///   - isDry: Whether to use a copy in memory, and only read the file.
    /// - Throws: A `JournalError` when it cannot be used.
    init(_ location: JournalLocation, keeping retention: JournalRetention, isDry: Bool = false) throws(JournalError) {
        switch location {
        case .memory:
            if !isDry { CommandContext.scratchDirectories(of: nil).removeAbandoned() }
            journal = try DiskStore(inMemory: nil, now: DiskProbe.now())
            (file, kept) = (nil, [])
        case .file(let path):
            if isDry {
                (journal, kept) = (try DiskStore(inMemory: path, now: DiskProbe.now()), [])
            } else {
                journal = try DiskStore(at: path, now: DiskProbe.now(), keeping: retention)
                kept = Self.clear(path, journal)
            }
            // Its other files are beside the file itself, not beside a symbolic link to it.
            file = KernelFileSystem().resolve(path) ?? path
        }
    }

    /// Removes the scratch directories of interrupted actions; if the file of a job has gone, it may be among the files
    /// that its program left there, and these are kept.
    ///
    /// - Parameters:
    ///   - path: The path of the journal.
    ///   - journal: The journal, opened by this process.
    /// - Returns: The directories of the files that are kept.
    @discardableResult
    static func clear(_ path: PathBytes, _ journal: DiskStore) -> [PathBytes] {
        var kept: [PathBytes] = []
        CommandContext.scratchDirectories(of: path).removeAbandoned { id, directory in
            guard let stored = journal.job(id, at: ClockPair(DiskProbe.now(), .now)),
                KernelFileSystem().stat(stored.job.job.event.path) == .absent, let launcher = ProcessLauncher.find(),
                let (place, problem) = KeptFiles(journal: path).take(
                    directory, of: id, ProcessLauncher(launcher: launcher))
            else { return true }
            if problem == nil { kept.append(place) }
            return problem == nil
        }
        return kept
    }

    /// Returns the paths under which rules with these roots would see the file.
    ///
    /// - Parameter roots: The watched directories.
    /// - Returns: The path itself, and the paths through roots that are symbolic links.
    func names(below roots: [PathBytes]) -> [PathBytes] {
        file.map { [$0] + $0.aliases(below: roots) } ?? []
    }
}
