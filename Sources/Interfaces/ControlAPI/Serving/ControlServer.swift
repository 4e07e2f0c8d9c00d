import Glibc
import Synchronization
package import System

/// Serves the API at a Unix socket and at TCP addresses, on threads of its own.
///
/// Publishing an event or answering an operation never waits for a client. The HTTP library is loaded when the first
/// client connects, so that starting costs no more than a socket and a sleeping thread.
package final class ControlServer: Sendable {
    private let clients: Clients
    private let thread = Mutex<WorkerThread?>(nil)

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - socket: The Unix socket; it is removed when the server stops.
    ///   - addresses: The TCP addresses.
    ///   - access: The access control for TCP.
    ///   - routes: The routes.
    ///   - operations: The operations, for the status in the event stream.
    ///   - feed: The events.
    ///   - renew: Returns another socket when the file of the socket, whose path it gets, has been removed; nil if that
    ///     is not possible now, and whether this is not the first call for it.
    ///   - complain: Called once with the reason if no client can be served.
    /// - Throws: A `ControlProblem` when it cannot listen at an address, or when no thread can be started.
    package init(
        _ socket: ControlSocket?, addresses: [ListenAddress] = [], access: Access? = nil, routes: Routes,
        operations: any Operations, feed: EventFeed,
        renew: @escaping @Sendable (_ lost: PathBytes, _ isRepeated: Bool) -> ControlSocket? = { _, _ in nil },
        complain: @escaping @Sendable (String) -> Void
    ) throws(ControlProblem) {
        var network: [Int32] = []
        do throws(ControlProblem) {
            clients = try Clients(access: access, routes: routes, operations: operations, feed: feed)
            for address in addresses { network += try address.open() }
            let started = WorkerThread(name: "alight-control") { [clients, network] in
                ServerLoop(clients, socket, network: network, renew: renew, complain: complain).run()
                for descriptor in network { close(descriptor) }
            }
            guard let started else {
                throw ControlProblem("cannot start a thread", help: "raise the limit of processes (ulimit -u)")
            }
            thread.withLock { $0 = started }
        } catch {
            for descriptor in network { close(descriptor) }
            socket?.end()
            throw error
        }
    }

    /// Closes all connections, stops the thread, and removes the socket.
    package func stop() {
        let running = thread.withLock { $0.take() }
        clients.stop()
        running?.join()
    }

    deinit { stop() }
}
