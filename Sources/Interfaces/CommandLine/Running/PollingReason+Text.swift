import FileWatching
import System

extension PollingReason {
    /// Why a folder is polled, for people.
    var text: String {
        switch self {
        case .asked: "the rule sets 'backend: poll'"
        case .fileSystem(let name): "the kernel does not report all changes on \(name)"
        }
    }
}
