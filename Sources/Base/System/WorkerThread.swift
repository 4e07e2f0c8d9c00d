import CAlightLinux
import Glibc

/// A thread of its own for work that blocks, which Swift's cooperative pool must not do.
package struct WorkerThread: Sendable {
    private final class Box: Sendable {
        let name: String
        let body: @Sendable () -> Void
        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    private let handle: pthread_t

    /// Starts the thread at once; nil when the system has no room for one.
    ///
    /// - Parameters:
    ///   - name: At most 15 bytes are shown by ps and top.
    ///   - body: Runs on the thread.
    package init?(name: String, body: @escaping @Sendable () -> Void) {
        let box = Unmanaged.passRetained(Box(name: name, body: body))
        var handle = pthread_t()
        let result = pthread_create(
            &handle, nil,
            { raw in
                guard let raw else { return nil }
                let box = Unmanaged<Box>.fromOpaque(raw).takeRetainedValue()
                cal_name_thread(box.name)
                box.body()
                return nil
            }, box.toOpaque())
        guard result == 0 else {
            box.release()
            return nil
        }
        self.handle = handle
    }

    /// Waits for the thread to end.
    ///
    /// Call it once, or ``detach()`` instead.
    package func join() { pthread_join(handle, nil) }

    /// Lets the thread end by itself; nobody waits for it.
    package func detach() { pthread_detach(handle) }
}
