import Engine
import FileEvents
import FileWatching
import Glibc
import Settling
import Synchronization

/// A file that is touched again and again, to see that what happens to files is still seen.
///
/// The touch goes the way of all events: the kernel's queue, the watcher's thread, the engine's turn. What comes out
/// of that is the sign of life that systemd's watchdog asks for; when it does not come, systemd starts Alight anew.
final class Canary: Sendable {
    let watched: WatchedCanary
    private let wake: Wake
    private let isEnding = Atomic(false)
    private let thread = Mutex<WorkerThread?>(nil)

    /// Makes the folder of the file, which is nobody else's.
    ///
    /// - Parameters:
    ///   - limit: How long systemd waits for a sign of life.
    ///   - variables: The environment, which says where such a folder can be.
    /// - Throws: When there is no folder, or no descriptor, to be had.
    init(within limit: Duration, _ variables: [String: String]) throws(WatchError) {
        wake = try Wake()
        let places =
            (variables["RUNTIME_DIRECTORY"]?.split(separator: ":").map(String.init) ?? [])
            + [variables["XDG_RUNTIME_DIR"], geteuid() == 0 ? "/run" : nil, "/tmp"].compactMap(\.self)
        var found: PathBytes?
        for place in places where found == nil { found = Self.makeFolder(in: place) }
        guard let found else { throw .refused("mkdtemp", errno: errno) }
        watched = WatchedCanary(folder: found, interval: limit / 4)
    }

    private static func makeFolder(in place: String) -> PathBytes? {
        guard place.hasPrefix("/") else { return nil }
        removeAbandoned(in: PathBytes(place))
        var template = Array("\(place)/\(prefix)\(getpid())-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { return nil }
        return PathBytes(template.dropLast().map { UInt8(bitPattern: $0) })
    }

    /// Begins to touch it, several times in each span that systemd waits for; false when there is no thread for it.
    func start() -> Bool {
        guard self.thread.withLock({ $0 == nil }) else { return true }
        let thread = WorkerThread(name: "alight-canary") { [self] in
            while !isEnding.load(ordering: .acquiring) {
                touch()
                wake.wait(until: .now + watched.interval)
            }
        }
        guard let thread else { return false }
        self.thread.withLock { $0 = thread }
        return true
    }

    /// Ends the touching, and removes the folder.
    func end() {
        isEnding.store(true, ordering: .releasing)
        wake.signal()
        thread.withLock { thread in
            thread?.join()
            thread = nil
        }
        _ = watched.file.withCString { unlink($0) }
        _ = watched.folder.withCString { rmdir($0) }
    }

    private static let prefix = "alight-canary-"

    /// Removes the folders of Alights that were killed.
    private static func removeAbandoned(in place: PathBytes) {
        for name in DiskProbe.names(in: place) {
            guard let text = name.text, text.hasPrefix(prefix) else { continue }
            guard let number = text.dropFirst(prefix.count).split(separator: "-").first.flatMap({ pid_t($0) }),
                number > 0, number == getpid() || kill(number, 0) != 0 && errno == ESRCH
            else { continue }
            let abandoned = WatchedCanary(folder: place.appending(name.bytes), interval: .zero)
            _ = abandoned.file.withCString { unlink($0) }
            _ = abandoned.folder.withCString { rmdir($0) }
        }
    }

    private func touch() {
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        let descriptor = watched.file.withCString { open($0, flags, 0o600) }
        guard descriptor >= 0 else { return }
        let text = Array("alive\n".utf8)
        _ = write(descriptor, text, text.count)
        close(descriptor)
    }
}
