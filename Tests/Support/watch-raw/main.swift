import FileEvents
import Glibc
import RawInotify

// Watches the paths of the command line, and prints what comes of that.
do throws(InotifyError) {
    let inotify = try Inotify()
    for path in CommandLine.arguments.dropFirst() {
        try inotify.add(path: PathBytes(path), mask: .create)
        print("watching \(path)")
    }
} catch {
    print("\(error)\n\(error.help)")
    exit(1)
}
