import Pipeline
import Storage
import System
import Watching

extension ServiceManager {
    /// Forwards the reports that systemd can use.
    func note(_ report: EngineReport) {
        switch report {
        case .alive: noteAlive()
        case .ready(let folders, let rules), .reloaded(let folders, let rules):
            noteReady("watching \(Reporter.count(folders, "directory")) for \(Reporter.count(rules, "rule"))")
        case .notReloaded: noteNotReloaded()
        case .watching(.progress(let folders)): noteProgress("listing: \(folders) directories so far")
        case .journal(let fault?): note("the journal cannot be used: \(fault.description)")
        case .journal(nil): note("the journal can be written again")
        case .draining(let jobs): noteStopping(jobs == 0 ? "stopping" : "finishing \(Reporter.count(jobs, "job"))")
        default: break
        }
    }
}
