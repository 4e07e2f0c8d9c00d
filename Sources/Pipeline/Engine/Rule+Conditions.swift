import FileEvents
import Logging
import Rules

extension Rule {
    /// Logs why `where` refuses an event; a match is not logged.
    func log(_ answer: ConditionAnswer, of event: FileEvent, to log: Logger) {
        switch answer {
        case .holds, .needsContent: break
        case .fails(let reason): log.debug("\(skipped(event, reason))", metadata: ["rule": "\(name)"])
        case .untold(let reason):
            // This is expected for a missing file and raw events, and for the writer if the kernel does not report
            // it, or if the file existed before.
            let isAbsent =
                event.author == .unknown(.denied) || event.origin != .live && event.author == .unknown(.unseen)
            let level: Logger.Level =
                event.kind == .deleted || event.kind.isRaw ? .debug : isAbsent ? .info : .warning
            log.log(level: level, "\(skipped(event, reason))", metadata: ["rule": "\(name)"])
        }
    }

    private func skipped(_ event: FileEvent, _ reason: String) -> String {
        "'where' skips \(event.kind.rawValue) \(event.path): \(reason)"
    }
}
