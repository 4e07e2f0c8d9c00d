import CRawInotify
import Synchronization

#if canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The tasks that wait for events of one instance, and the thread that waits for them in poll(2).
///
/// The thread reads nothing: what nobody takes stays in the kernel's queue.
final class InotifyWaiters: Sendable {
    private struct State {
        var continuations: [CheckedContinuation<Void, Never>] = []
        var isClosed = false
    }

    private let queue: InotifyQueue
    /// Tells the thread that somebody waits again.
    private let bell: Int32
    private let state = Mutex(State())

    init(_ queue: InotifyQueue) throws(InotifyError) {
        self.queue = queue
        bell = cri_eventfd()
        guard bell >= 0 else { throw .noDescriptor(errno: -bell) }
        let kept = Unmanaged.passRetained(self)
        let error = cri_start_thread(
            { raw in
                guard let raw else { return nil }
                Unmanaged<InotifyWaiters>.fromOpaque(raw).takeRetainedValue().run()
                return nil
            }, kept.toOpaque())
        guard error == 0 else {
            kept.release()
            throw .noThread(errno: error)
        }
    }

    deinit { if bell >= 0 { close(bell) } }

    /// Suspends until there may be something to take, or the instance is closed.
    func wait(isolation: isolated (any Actor)?) async {
        await withCheckedContinuation(isolation: isolation) { continuation in
            let (isOver, isFirst) = state.withLock { state in
                if state.isClosed { return (true, false) }
                state.continuations.append(continuation)
                return (false, state.continuations.count == 1)
            }
            if isOver { continuation.resume() }
            if isFirst { InotifyQueue.ring(bell) }
        }
    }

    /// Lets all go on; the thread ends when the queue says that waiting is over.
    func end() { resumeAll { $0.isClosed = true } }

    private func resumeAll(_ change: (inout State) -> Void = { _ in }) {
        let continuations = state.withLock { state in
            change(&state)
            defer { state.continuations = [] }
            return state.continuations
        }
        for continuation in continuations { continuation.resume() }
    }

    private func run() {
        while true {
            let isWanted = state.withLock { !$0.continuations.isEmpty }
            var polled = [
                pollfd(fd: queue.closing, events: Int16(POLLIN), revents: 0),
                pollfd(fd: bell, events: Int16(POLLIN), revents: 0),
                pollfd(fd: isWanted ? queue.descriptor : -1, events: Int16(POLLIN), revents: 0),
            ]
            _ = poll(&polled, 3, -1)
            if polled[0].revents != 0 { return }
            if polled[1].revents != 0 {
                var count: UInt64 = 0
                _ = read(bell, &count, 8)
            }
            if polled[2].revents != 0 { resumeAll() }
        }
    }
}
