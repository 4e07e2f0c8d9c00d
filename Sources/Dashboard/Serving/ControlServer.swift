import CAlightLinux
package import FileEvents
import FileWatching
import Glibc
import Synchronization

/// Serves the API on a thread of its own, at a Unix socket and at TCP addresses.
///
/// Nobody who publishes or answers ever waits for a client. The library that speaks HTTP is loaded when the first client
/// connects, so that a start costs no more than a socket and a thread that sleeps.
package final class ControlServer: Sendable {
    /// What is said to the thread.
    enum Message: Sendable {
        /// What is answered to the request of that number.
        case answer(UInt64, APIResponse)
        /// How it stands, as text, and without what changes with time alone.
        case status(String)
        case stop
    }

    final class Inbox: Sendable {
        private let messages = Mutex<[Message]>([])
        let descriptor: Int32

        init() throws(ControlProblem) {
            descriptor = cal_eventfd()
            guard descriptor >= 0 else {
                throw ControlProblem("can't open an eventfd", help: "raise the limit of open files (ulimit -n)")
            }
        }

        deinit { close(descriptor) }

        func post(_ message: Message) {
            messages.withLock { $0.append(message) }
            wake()
        }

        func wake() {
            var one: UInt64 = 1
            _ = write(descriptor, &one, 8)
        }

        func take() -> [Message] {
            var count: UInt64 = 0
            _ = read(descriptor, &count, 8)
            return messages.withLock { messages in
                let taken = messages
                messages = []
                return taken
            }
        }
    }

    /// Most requests that wait for a file, behind one that is being opened.
    private static let mostForFiles = 16

    private let inbox: Inbox
    private let thread = Mutex<WorkerThread?>(nil)
    /// The address to which somebody connects who wants to know.
    package let path: PathBytes?

    /// Begins to serve.
    ///
    /// - Parameters:
    ///   - socket: The Unix socket; it is removed at the end.
    ///   - addresses: TCP addresses.
    ///   - access: Who may ask there.
    ///   - routes: What is served.
    ///   - operations: Who says how it stands, for those who follow the events.
    ///   - feed: The events.
    ///   - complain: Says why nobody can be served, once.
    /// - Throws: When an address can't be listened at, or there is no thread to be had.
    package init(
        _ socket: ControlSocket?, addresses: [ListenAddress] = [], access: Access? = nil, routes: Routes,
        operations: any Operations, feed: EventFeed, complain: @escaping @Sendable (String) -> Void
    ) throws(ControlProblem) {
        inbox = try Inbox()
        var network: [Int32] = []
        for address in addresses {
            do throws(ControlProblem) {
                network += try address.open()
            } catch {
                for descriptor in network { close(descriptor) }
                socket?.end()
                throw error
            }
        }
        path = socket?.path
        let worker: Worker
        let files: Worker
        do throws(WatchError) {
            worker = try Worker()
            files = try Worker(most: Self.mostForFiles)
        } catch {
            socket?.end()
            throw ControlProblem("can't open an eventfd", help: "raise the limit of open files (ulimit -n)")
        }
        let parts = ServerLoop.Parts(
            access: access, routes: routes, operations: operations, feed: feed, worker: worker, files: files,
            inbox: inbox, complain: complain)
        let sockets = network
        let started = WorkerThread(name: "alight-control") {
            ServerLoop(parts, socket?.descriptor, network: sockets).run()
            socket?.end()
            for descriptor in sockets { close(descriptor) }
        }
        guard let started else {
            socket?.end()
            for descriptor in sockets { close(descriptor) }
            throw ControlProblem("can't start a thread", help: "raise the limit of processes (ulimit -u)")
        }
        thread.withLock { $0 = started }
    }

    /// Ends all connections and the thread, and removes the socket.
    package func stop() {
        let running = thread.withLock { thread in
            let running = thread
            thread = nil
            return running
        }
        inbox.post(.stop)
        running?.join()
    }

    deinit { stop() }
}
