import Configuration
import ControlAPI
import Dashboard
import FileEvents
import Glibc
import JSON
import Pipeline
import Rules
import Storage
import System

/// The control server of a running instance.
struct RunningControl {
    private let server: ControlServer?

    /// Starts the server, and reports its addresses, and its socket if that is not the default one.
    ///
    /// Alight also works without the socket, so only a failure of an address or socket that was named explicitly is an
    /// error.
    ///
    /// - Throws: `Exit` when the server cannot be started as requested; the error has been reported.
    init(
        _ addresses: [ListenAddress], _ settings: Configuration, _ operations: RunningOperations,
        _ metrics: RunningMetrics?, _ feed: EventFeed, _ reporter: Reporter
    ) throws {
        let urls = addresses.isEmpty ? [] : settings.externalURLs?.value ?? []
        let isOpen = !urls.isEmpty || addresses.contains { !$0.isLoopback }
        let access = Access(
            hosts: addresses.reduce(into: []) { $0.formUnion($1.hosts) },
            takesNumbers: addresses.contains(where: \.isAny), origins: Set(urls),
            token: isOpen ? try Self.token(operations.journal, reporter) : nil)
        let socket = try Self.socket(settings.control, reporter)
        guard socket != nil || !addresses.isEmpty else {
            server = nil
            return
        }
        var text: (@Sendable () -> String)?
        if let metrics { text = { metrics.text(operations.standing()) } }
        var routes = Routes(operations, metrics: text)
        routes.addPages(operations)
        do throws(ControlProblem) {
            server = try ControlServer(
                socket, addresses: addresses, access: access, routes: routes, operations: operations, feed: feed,
                complain: { problem in
                    reporter.say(
                        .warning, "cannot serve requests at the control socket: \(Display.text(problem))",
                        help: "install libmicrohttpd12, and restart Alight")
                })
        } catch {
            throw reporter.failure(error)
        }
        for link in addresses.map({ "http://\($0.linkText)/" }) + urls.map({ "\($0)/" }) {
            guard let token = access.token else {
                reporter.say(.notice, "dashboard: \(link)")
                continue
            }
            // The token is required for access, so it is printed at every log level.
            reporter.tell(.notice, "dashboard: \(link)?token=\(token)")
        }
        for address in addresses where !address.isLoopback {
            reporter.say(
                .warning, "'\(address.text)' can be reached by other hosts, and the connection is not encrypted",
                help: "listen at 127.0.0.1 and use ssh -L, or put a proxy with TLS in front")
        }
    }

    /// Returns the stored token, or a new one if the journal is in memory, so that nothing outlives the process.
    private static func token(_ journal: PathBytes?, _ reporter: Reporter) throws -> String {
        guard let journal else { return Access.makeToken() }
        do throws(ControlProblem) {
            return try TokenFile.token(at: TokenFile.path(beside: journal))
        } catch {
            throw reporter.failure(error)
        }
    }

    /// The path of the socket; nil if there is none.
    var path: PathBytes? { server?.path }

    /// Stops the server, and removes the socket.
    func end() { server?.stop() }

    private static func socket(_ setting: Setting<PathBytes?>?, _ reporter: Reporter) throws -> ControlSocket? {
        guard let usual = setting?.value else { return nil }
        // A socket named with `--control` is for this instance alone and is required; other settings may be shared.
        if setting?.origin == .flag("--control") {
            do throws(ControlProblem) {
                return try ControlSocket(at: usual)
            } catch {
                throw reporter.failure(error)
            }
        }
        func withoutIt(_ problem: ControlProblem) -> ControlSocket? {
            reporter.say(
                .warning, "\(Display.text(problem.message)); without it there is no 'alight status'",
                help: problem.help)
            return nil
        }
        do throws(ControlProblem) {
            return try ControlSocket(at: usual)
        } catch {
            guard error.isTaken else { return withoutIt(error) }
        }
        // Removes the sockets of instances that were killed.
        _ = ControlSocket.othersAlive(besides: usual, removingDead: true)
        let other = ControlSocket.besides(usual, process: getpid())
        do throws(ControlProblem) {
            let socket = try ControlSocket(at: other)
            reporter.say(
                .notice,
                "another instance listens at '\(Display.path(usual))'; this one listens at '\(Display.path(other))'"
            )
            return socket
        } catch {
            return withoutIt(error)
        }
    }
}

extension EventFeed {
    /// Publishes a report of the engine to the clients that follow the events.
    func take(_ report: EngineReport) {
        for attempt in report.attempts { publish(.attempt) { Reporter.object(attempt).line } }
        guard case .accepted(let jobs) = report, isFollowed else { return }
        // One event per path, regardless of the number of rules.
        var rules: [PathBytes: [String]] = [:]
        for job in jobs { rules[job.event.path, default: []].append(job.rule) }
        for job in jobs {
            guard let names = rules.removeValue(forKey: job.event.path) else { continue }
            let (path, kind, time) = (job.event.path, job.event.kind, job.event.time)
            publish(.file) {
                var object: [String: JSONValue] = [
                    "at": .string(time.milliseconds), "kind": .string(kind.rawValue),
                    "rules": .array(names.map { .string($0) }),
                ]
                object.add("path", path)
                return object.line
            }
        }
    }
}

extension Timestamp {
    /// The time in RFC 3339 format in UTC with milliseconds, the format of all times in the API.
    var milliseconds: String {
        let whole = Timestamp(seconds: seconds, nanoseconds: 0).description.dropLast()
        let fraction = String(nanoseconds / 1_000_000)
        return "\(whole).\(String(repeating: "0", count: 3 - fraction.count))\(fraction)Z"
    }
}
