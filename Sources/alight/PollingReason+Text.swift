import FileWatching

extension PollingReason {
    /// Why a folder is polled, for people.
    var text: String {
        switch self {
        case .asked: "as the rule asks"
        case .fileSystem(let name): "as the kernel does not tell of all changes on \(name)"
        }
    }
}
