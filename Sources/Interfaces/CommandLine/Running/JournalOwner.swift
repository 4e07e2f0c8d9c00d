import Dashboard
import FileEvents
import Glibc
import Pipeline
import Rules
import Storage
import System

/// The program that may change a journal: the running instance, or this command while no instance has the journal.
enum JournalOwner {
    case instance(ControlClient)
    case command(DiskStore)

    /// How long an instance that starts or stops is waited for.
    private static let patience = Duration.seconds(2)

    /// Opens the journal, or finds the control socket of the instance that has it.
    ///
    /// - Parameters:
    ///   - path: The journal.
    ///   - isBrief: Whether it is closed again at once, so that others wait for that.
    /// - Returns: Who has the journal now.
    /// - Throws: `Exit` when neither can be had; it has been said.
    static func find(_ path: PathBytes, isBrief: Bool) throws -> JournalOwner {
        let deadline = ContinuousClock.now + patience
        while true {
            let problem: JournalError
            do throws(JournalError) {
                return .command(try OpenJournal.file(at: path, isBrief: isBrief))
            } catch {
                problem = error
            }
            if case .noAccess = problem {
                throw said(problem, help: "run this command as the journal's user, or as root")
            }
            guard case .held = problem else { throw said(problem, help: problem.help) }
            if let socket = DiskStore.control(of: path) {
                let descriptor = ControlSocket.connected(to: socket, patience: 0)
                if descriptor >= 0 { close(descriptor) }
                // Where nobody listens an instance is stopping. Any other error is explained when the client asks.
                if ![-ENOENT, -ENOTDIR, -ECONNREFUSED].contains(descriptor) { return .instance(ControlClient(socket)) }
            }
            guard ContinuousClock.now < deadline else {
                throw said(
                    problem,
                    help: "it has no control socket: wait until it exits or stop it, and start 'alight run' without "
                        + "'control: false' and '--no-control'")
            }
        }
    }

    private static func said(_ problem: JournalError, help: String) -> Exit {
        Output.error.write("error: \(Display.text(problem.description))\n    help: \(Display.text(help))")
        return Exit(.runtimeError)
    }

    /// Carries out a command, and closes the journal.
    ///
    /// - Parameters:
    ///   - command: What is asked for.
    ///   - rules: Without an instance, the rules that are told nothing of what is undone.
    /// - Throws: `Exit` when it can't be done, or not be kept; it has been said.
    func carryOut(_ command: JobCommand, rules: () -> Ruleset = { Ruleset([]) }) throws {
        switch self {
        case .instance(let client): _ = try client.said { () throws(ControlClient.Problem) in try client.ask(command) }
        case .command(let journal):
            let fault = Engine.carryOut(command, rules(), in: journal)
            try Faults.said { () throws(JournalFault) in
                if let fault = journal.close(at: DiskProbe.now()) ?? fault { throw fault }
            }
        }
    }
}
