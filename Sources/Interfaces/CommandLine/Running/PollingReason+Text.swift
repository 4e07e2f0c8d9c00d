import FileEvents

extension PollingReason {
    /// The reason why a directory is polled, as a message for users.
    var text: String {
        switch self {
        case .asked: "the rule sets 'backend: poll'"
        case .fileSystem(let name): "the kernel does not report all changes on \(name)"
        }
    }
}
