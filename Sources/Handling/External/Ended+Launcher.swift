import Foundation
import Glibc

extension Ended.Way {
    /// How a program ended, as its launcher tells by its own end.
    ///
    /// - Parameters:
    ///   - end: Where the end of the launcher is told.
    ///   - process: The launcher.
    ///   - said: The last line on standard error, if nothing was printed to standard output.
    init(_ end: ProcessEnd, _ process: Process, said: String?) {
        guard let (status, isSignal) = end.wait(10) ?? Self.reaped(process) else {
            // Another part of the process has reaped the child: its status is lost, and it counts as killed.
            self = .signalled(SIGKILL)
            return
        }
        guard !isSignal else {
            self = .signalled(status)
            return
        }
        // The launcher's own words. A program that says them with such a status gets the same outcome anyhow.
        let mark = "alight-launch: "
        guard (125...127).contains(status), let said, said.hasPrefix(mark) else {
            self = .exited(status: status)
            return
        }
        let reason = String(said.dropFirst(mark.count))
        self = status == 125 ? .notLaunched(reason) : .couldNotStart(reason)
    }

    /// Reaps the launcher when Foundation has not noticed its end.
    private static func reaped(_ process: Process) -> (status: Int32, isSignal: Bool)? {
        var status: Int32 = 0
        guard waitpid(process.processIdentifier, &status, WNOHANG) == process.processIdentifier else { return nil }
        return status & 0x7F == 0 ? (status >> 8 & 0xFF, false) : (status & 0x7F, true)
    }
}
