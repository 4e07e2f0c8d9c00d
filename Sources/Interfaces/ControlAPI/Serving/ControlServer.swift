import FileEvents
import Glibc
import Synchronization
package import System

/// Serves the API at a Unix socket and at TCP addresses, on threads of its own.
///
/// Nobody who publishes or answers ever waits for a client. The library that speaks HTTP is loaded when the first client
/// connects, so that a start costs no more than a socket and a thread that sleeps.
package final class ControlServer: Sendable {
    private let clients: Clients
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
        do throws(ControlProblem) {
            clients = try Clients(access: access, routes: routes, operations: operations, feed: feed)
        } catch {
            socket?.end()
            throw error
        }
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
        let sockets = network
        let started = WorkerThread(name: "alight-control") { [clients] in
            ServerLoop(clients, socket?.descriptor, network: sockets, complain: complain).run()
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
        clients.stop()
        running?.join()
    }

    deinit { stop() }
}
