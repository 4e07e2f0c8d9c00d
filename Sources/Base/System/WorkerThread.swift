import CAlightLinux
import Glibc

/// A dedicated thread for blocking work, which must not run in Swift's cooperative pool.
package struct WorkerThread: Sendable {
    private typealias Start = Box<(name: String, body: @Sendable () -> Void)>

    private let handle: pthread_t

    /// Starts the thread at once; nil if the system cannot create one.
    ///
    /// - Parameters:
    ///   - name: The name for ps and top, which show at most 15 bytes.
    ///   - body: The closure to run on the thread.
    package init?(name: String, body: @escaping @Sendable () -> Void) {
        let start = Unmanaged.passRetained(Start((name, body)))
        var handle = pthread_t()
        let result = pthread_create(
            &handle, nil,
            { raw in
                guard let raw else { return nil }
                let start = Unmanaged<Start>.fromOpaque(raw).takeRetainedValue().value
                cal_name_thread(start.name)
                start.body()
                return nil
            }, start.toOpaque())
        guard result == 0 else {
            start.release()
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
