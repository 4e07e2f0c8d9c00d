import FileObserving
import Glibc

/// Prints the path of each event in a directory as soon as the file is finished: a minimal program with the library.
@main
struct Observer {
    static func main() async throws {
        guard CommandLine.arguments.count == 2 else {
            say("usage: observer DIR")
            exit(64)
        }
        var options = ObservationOptions()
        options.settle = .zero
        options.events = .differences
        options.notify = { notice in
            switch notice {
            case .ready(let folders): say("ready: watching \(folders) folders")
            case .overflow: say("overflow")
            default: break
            }
        }
        for try await batch in try FileObserver(roots: [PathBytes(CommandLine.arguments[1])], options: options).batches
        {
            for event in batch {
                guard print(event.path.bytes, to: STDOUT_FILENO) else { return }
            }
        }
    }

    private static func say(_ text: String) { _ = print(Array(text.utf8), to: STDERR_FILENO) }

    /// Whether the whole line was written.
    private static func print(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        let line = bytes + [UInt8(ascii: "\n")]
        return write(descriptor, line, line.count) == line.count
    }
}
