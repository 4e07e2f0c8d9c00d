import CAlightLinux
import Glibc

/// A dedicated thread for blocking work, which must not run in Swift's cooperative pool.
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

    /// Starts the thread at once; nil if the system cannot create one.
    ///
    /// - Parameters:
    ///   - name: The name for ps and top, which show at most 15 bytes.
    ///   - body: The closure to run on the thread.
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

    /// Waits for the thread to finish.
    ///
    /// Call it once, or call ``detach()`` instead.
    package func join() { pthread_join(handle, nil) }

    /// Lets the thread finish without being joined.
    package func detach() { pthread_detach(handle) }
}
