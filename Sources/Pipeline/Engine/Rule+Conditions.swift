package import FileEvents
package import Logging
package import Rules

extension Rule {
    /// Whether an event becomes a job, as far as that shows without a look at the content.
    ///
    /// What does not is known all the same: the rule isn't told of it again unless it changes.
    package func lets(_ event: FileEvent, log: Logger) -> Bool {
        let answer = admits(event)
        switch answer {
        case .holds, .needsContent: return true
        case .fails(let reason): log.debug("\(skipped(event, reason))", metadata: ["rule": "\(name)"])
        case .untold(let reason):
            // Of what is gone, or is only passed on, it is no surprise; nor is it that nobody says who wrote, where that
            // has been told, or the file was there before.
            let isAbsent =
                event.author == .unknown(.denied) || event.origin != .live && event.author == .unknown(.unseen)
            let level: Logger.Level =
                event.kind == .deleted || event.kind.isRaw ? .debug : isAbsent ? .info : .warning
            log.log(level: level, "\(skipped(event, reason))", metadata: ["rule": "\(name)"])
        }
        return false
    }

    private func skipped(_ event: FileEvent, _ reason: String) -> String {
        "'where' leaves \(event.kind.rawValue) \(event.path): \(reason)"
    }
}
