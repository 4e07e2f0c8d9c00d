import FileObserving
import Glibc

// Prints the images that arrive in a directory, each when it is complete.

guard CommandLine.arguments.count == 2 else {
    print("usage: observe-a-folder DIRECTORY")
    exit(2)
}

var options = ObservationOptions()
options.globs = ["**/*.{jpg,jpeg,png}"]
options.settle = .milliseconds(200)
options.events = [.created, .modified, .moved, .deleted]
options.missing = .create
options.notify = { notice in
    if case .watchLimit(let sysctl, _, let needed, _) = notice { print("raise \(sysctl) to \(needed)") }
}

do throws(ObservationError) {
    let observer = try FileObserver(roots: [PathBytes(CommandLine.arguments[1])], options: options)
    try await observer.waitUntilReady()
    print("ready")
    fflush(nil)
    for try await event in observer.events {
        print(event.kind.rawValue, event.path, event.snapshot.size, separator: "\t")
        fflush(nil)
    }
} catch {
    print("\(error): \(error.help)")
    exit(1)
}
