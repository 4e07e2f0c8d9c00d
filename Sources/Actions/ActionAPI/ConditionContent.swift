import ContentTypes
package import FileEvents
package import Rules
package import System

extension ConditionInput.Content {
    /// Reads the content type of an event's file; blocks for as long as the file system does.
    package init(of event: FileEvent) { self.init(of: event.path, below: event.root) }

    package init(of path: PathBytes, below root: PathBytes) {
        switch ContentType.find(opened: DiskProbe.openForReading(path, below: root)) {
        case .type(let type): self = .type(type)
        case .absent: self = .unknown("it was gone before its content was read")
        case .notRegular: self = .unknown("it is no longer a regular file")
        case .unreadable(let errno): self = .unreadable("its content can't be read: \(SystemError(errno: errno))")
        case .failed(let reason): self = .unknown("its content type can't be determined: \(reason)")
        }
    }
}

extension Condition {
    /// Evaluates the condition for an existing file; reads the content only if the answer depends on it.
    package func answerNow(_ path: PathBytes, root: PathBytes, snapshot: Snapshot) -> ConditionAnswer {
        var input = ConditionInput(path: path, root: root, snapshot: snapshot, now: DiskProbe.now())
        return answer(&input) { ConditionInput.Content(of: path, below: root) }
    }
}
