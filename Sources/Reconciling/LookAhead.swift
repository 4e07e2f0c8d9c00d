import FileEvents
import FileWatching
import Glibc
import Settling
import Synchronization

/// Looks at paths that the first listing found on a second thread, before their turn comes.
///
/// Such a look waits for the kernel, and of the start it is the most. The thread
/// goes through the paths from the last to the first, and whoever uses it from the
/// first to the last; where they meet, everything has been looked at once. A path
/// that is asked for too early is looked at by whoever asks.
///
/// What was seen may be older than the question, but no older than this value: what
/// changes from then on is told by the watcher, as after any look.
final class LookAhead: Sendable {
    /// What was seen of a path.
    struct Look {
        var sight: DiskProbe.Sight
        /// See ``Reconciler/recentWriters(of:_:)``.
        var writers: DiskProbe.Holders?

        init(at path: PathBytes, _ files: WatchedPaths, on host: Host, reading extras: DiskProbe.Extras) {
            do throws(SystemError) {
                let place = try files.place(of: path)
                sight = host.fileSystem.stat(place, reading: extras)
                if case .present(let snapshot) = sight {
                    writers = Reconciler.recentWriters(of: place, snapshot, on: host)
                }
            } catch {
                sight = DiskProbe.Sight(directory: error.errno)
            }
        }
    }

    private struct State {
        /// How many pieces are the asker's, from the front.
        var front = 0
        /// The first of the pieces that are the thread's.
        var back: Int
        /// What the thread has done.
        var done: [Int: [Look]] = [:]
    }

    /// So many hints make it worth a thread; what was seen of so many takes some 1 MB.
    static let window = 4_096
    private static let least = 256
    /// How many paths are looked at between two questions about who does which.
    private static let piece = 32

    /// With one processor two threads would only take turns.
    private static let isWorthIt = sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 1

    private let hints: ArraySlice<Hint>
    private let roots: Set<PathBytes>
    private let host: Host
    private let extras: DiskProbe.Extras
    private let state: Mutex<State>

    /// Begins; nil when it is not worth it, or there is no thread or processor to be had.
    init?(_ hints: ArraySlice<Hint>, roots: Set<PathBytes>, on host: Host, reading extras: DiskProbe.Extras) {
        guard hints.count >= Self.least, Self.isWorthIt else { return nil }
        self.hints = hints
        self.roots = roots
        self.host = host
        self.extras = extras
        state = Mutex(State(back: (hints.count + Self.piece - 1) / Self.piece))
        guard let thread = WorkerThread(name: "alight-look", body: { [self] in run() }) else { return nil }
        thread.detach()
    }

    private func run() {
        let files = WatchedPaths(roots: roots, in: host.fileSystem)
        while let piece = claim() {
            let looks = paths(of: piece).map { Look(at: hints[$0].path, files, on: host, reading: extras) }
            state.withLock { if $0.front <= piece { $0.done[piece] = looks } }
        }
    }

    /// The next piece for the thread; nil when all are done, or are the asker's.
    private func claim() -> Int? {
        state.withLock { state in
            guard state.back > state.front else { return nil }
            state.back -= 1
            return state.back
        }
    }

    private func paths(of piece: Int) -> Range<Int> {
        let start = hints.startIndex + piece * Self.piece
        return start..<min(start + Self.piece, hints.endIndex)
    }

    /// What has been seen of the paths from this one on; empty when the asker has to look.
    ///
    /// To be asked in rising order.
    func looks(from index: Int) -> [Look] {
        let piece = (index - hints.startIndex) / Self.piece
        return state.withLock { state in
            state.front = piece + 1
            return state.done.removeValue(forKey: piece) ?? []
        }
    }

    /// The places in the hints at which to ask anew.
    func isStart(_ index: Int) -> Bool { (index - hints.startIndex) % Self.piece == 0 }

    /// Has the thread come to an end.
    func end() { state.withLock { $0.front = .max } }
}
