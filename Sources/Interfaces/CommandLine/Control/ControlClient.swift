import CAlightLinux
import ControlAPI
import Glibc
import JSON
import Rules
import Running
import Storage
import System

/// A client of the running instance, which sends requests to its control socket and waits for the answers.
///
/// It uses HTTP/1.0, in which the end of the connection marks the end of the answer.
struct ControlClient {
    let path: PathBytes

    /// The timeout for a whole answer, in seconds.
    var timeout = 10

    /// Sends a request, and returns the value of the answer.
    ///
    /// - Throws: An `APIError` when the instance refuses the request, else a `Problem`.
    func ask(_ method: String, _ target: String, _ body: JSONValue? = nil) throws -> JSONValue {
        let text = body?.line ?? ""
        let connection = try Connection(path, timeout: timeout)
        try connection.send(method, target, text)
        let status = try connection.readHead()
        guard let value = connection.readValue() else { throw Problem.noAnswer(path) }
        guard (200..<300).contains(status) else { throw APIError(status, in: value) }
        return value
    }

    /// Asks the instance that uses a journal; returns nil if there is none, or if it does not answer.
    static func ask(instanceOf journal: PathBytes, _ target: String, timeout: Int = 2) -> JSONValue? {
        DiskStore.control(of: journal).flatMap { try? ControlClient(path: $0, timeout: timeout).ask("GET", target) }
    }

    /// Follows the events until the connection closes.
    ///
    /// - Parameters:
    ///   - target: The target of the request.
    ///   - body: Called for each event with its kind, its id and its data.
    /// - Throws: An `APIError` when the instance refuses the request, else a `Problem`.
    func follow(_ target: String, _ body: (_ kind: String, _ id: String?, _ data: String) -> Void) throws {
        let connection = try Connection(path, timeout: 0)
        try connection.send("GET", target, "")
        let status = try connection.readHead()
        guard status == 200 else { throw APIError(status, in: connection.readValue()) }
        var kind = ""
        var id: String?
        var data = ""
        while let line = connection.readLine() {
            if line.isEmpty {
                if !data.isEmpty { body(kind, id, data) }
                (kind, data) = ("", "")
            } else if line.hasPrefix("event: ") {
                kind = String(line.dropFirst(7))
            } else if line.hasPrefix("id: ") {
                id = String(line.dropFirst(4))
            } else if line.hasPrefix("data: ") {
                data += line.dropFirst(6)
            }
        }
    }
}

extension Problem {
    /// No process listens at the socket.
    fileprivate static func notRunning(_ path: PathBytes, errno: Int32) -> Problem {
        let location = Display.path(path)
        guard [ENOENT, ENOTDIR, ECONNREFUSED].contains(errno) else {
            return Problem(
                "cannot connect to the instance at '\(location)': \(SystemError(errno: errno))",
                help: "run this command as the user of that instance, or as root")
        }
        return Problem(
            "no instance is running: no process listens at '\(location)'",
            help: "start one with 'alight run', or name its socket with --control")
    }

    /// A process listens, but does not answer as Alight does.
    fileprivate static func noAnswer(_ path: PathBytes) -> Problem {
        Problem(
            "the instance at '\(Display.path(path))' does not respond", help: "see its messages; it may be stopping")
    }
}

extension APIError {
    /// Creates the error of an answer.
    fileprivate init(_ status: Int, in answer: JSONValue?) {
        self.init(
            status, answer?["error"]["message"].string ?? "the instance returned status \(status)",
            help: answer?["error"]["help"].string ?? "see its messages")
    }
}

/// A connection for one request and its answer.
private final class Connection {
    private let path: PathBytes
    private let descriptor: Int32
    /// The deadline for the whole answer; nil for a stream.
    private let deadline: ContinuousClock.Instant?
    /// The size limit of an answer in bytes.
    ///
    /// Alight never sends a longer one.
    private static let most = 32 << 20
    private var buffer: [UInt8] = []
    private var location = 0

    init(_ path: PathBytes, timeout: Int) throws(Problem) {
        self.path = path
        // The time to connect counts: if the process is stopped, connecting may use up the whole timeout.
        deadline = timeout > 0 ? .now + .seconds(timeout) : nil
        descriptor = ControlSocket.connected(to: path)
        guard descriptor >= 0 else {
            throw descriptor == -EAGAIN ? .noAnswer(path) : .notRunning(path, errno: -descriptor)
        }
        guard Self.isTrusted(descriptor) else { throw .notRunning(path, errno: EPERM) }
    }

    /// Limits the next send or receive to the time left; returns false if the deadline has passed.
    private func limit(_ option: Int32) -> Bool {
        guard let deadline else { return true }
        let microseconds = Int((deadline - .now) / .microseconds(1))
        // A timeout of zero would mean no limit.
        guard microseconds > 0 else { return false }
        var limit = timeval(tv_sec: microseconds / 1_000_000, tv_usec: microseconds % 1_000_000)
        setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        return true
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Returns whether the peer runs as this user or as root.
    ///
    /// Root trusts every user.
    private static func isTrusted(_ descriptor: Int32) -> Bool {
        var user: UInt32 = 0
        guard cal_peer_user(descriptor, &user) == 0 else { return false }
        return user == geteuid() || user == 0 || geteuid() == 0
    }

    func send(_ method: String, _ target: String, _ body: String) throws(Problem) {
        let head =
            "\(method) \(target) HTTP/1.0\r\nHost: alight\r\nContent-Type: application/json\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n"
        var bytes = Array((head + body).utf8)[...]
        while !bytes.isEmpty {
            guard limit(SO_SNDTIMEO) else { throw .noAnswer(path) }
            let count = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .noAnswer(path) }
            bytes = bytes.dropFirst(count)
        }
    }

    /// Reads the head of the answer and returns its status; the headers are ignored.
    func readHead() throws(Problem) -> Int {
        guard let first = readLine(), first.hasPrefix("HTTP/1."),
            let status = Int(first.split(separator: " ").dropFirst().first ?? "")
        else { throw .noAnswer(path) }
        while true {
            guard let line = readLine() else { throw .noAnswer(path) }
            if line.isEmpty { return status }
        }
    }

    /// Reads the body of an answer, until the connection closes; nil if it is too long or no JSON.
    func readValue() -> JSONValue? {
        while fill() { if buffer.count > Self.most { return nil } }
        return JSONValue(record: buffer[location...])
    }

    /// Returns the next line without its line ending; nil if the connection has closed or the line is too long.
    func readLine() -> String? {
        while true {
            if let end = buffer[location...].firstIndex(of: 0x0A) {
                var line = buffer[location..<end]
                if line.last == 0x0D { line.removeLast() }
                location = end + 1
                return String(decoding: line, as: UTF8.self)
            }
            if buffer.count > Self.most || !fill() { return nil }
        }
    }

    private func fill() -> Bool {
        buffer.removeFirst(location)
        location = 0
        var bytes = [UInt8](repeating: 0, count: 16_384)
        while limit(SO_RCVTIMEO) {
            let count = bytes.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            buffer += bytes[..<count]
            return true
        }
        return false
    }
}

// How a command is sent to the running instance: `POST /v1/retry {"jobs": ["01JD…"]}`.
extension JobCommand {
    /// The verb of the command, and the members of its body.
    ///
    /// The member `list` has one value per job or file.
    fileprivate var message: (verb: String, members: [String: JSONValue], list: String, values: [JSONValue]) {
        switch self {
        case .retry(let jobs): ("retry", [:], "jobs", jobs.map { .string($0.description) })
        case .discard(let jobs): ("discard", [:], "jobs", jobs.map { .string($0.description) })
        case .undo(let jobs): ("undo", [:], "jobs", jobs.map { .string($0.description) })
        case .apply(let files):
            ("apply", ["rule": .text(files.first?.rule)], "paths", files.map { JSONValue(bytes: $0.path.bytes) })
        }
    }

    /// Parses a command; each file of `apply` gets the id of a new job.
    ///
    /// - Throws: The error for an invalid body.
    init(_ verb: String, _ body: [String: JSONValue]) throws(APIError) {
        let list = verb == "apply" ? "paths" : "jobs"
        let help = verb == "apply" ? "write '{\"rule\": \"…\", \"paths\": [\"/…\"]}'" : "write '{\"jobs\": [\"…\"]}'"
        guard let values = body[list]?.array, body.count == (verb == "apply" ? 2 : 1) else {
            throw APIError(400, "the body has missing or unknown members", help: help)
        }
        if verb == "apply" {
            let paths = values.compactMap { $0.bytes.map { PathBytes($0) } }.filter(\.isAbsoluteName)
            guard let rule = body["rule"]?.string, paths.count == values.count else {
                throw APIError(400, "the body has no rule, or a path that is not absolute", help: help)
            }
            self = .apply(paths.map { JobRequest(id: JobID(now: DiskProbe.now()), rule: rule, path: $0) })
            return
        }
        let jobs = values.compactMap { $0.string.map { JobID($0) } }.filter(\.isWellFormed)
        guard jobs.count == values.count else { throw APIError(400, "the body has an invalid job id", help: help) }
        self = verb == "retry" ? .retry(jobs) : verb == "discard" ? .discard(jobs) : .undo(jobs)
    }

    /// The ids of the jobs that are named, or that will be created.
    var jobs: [JobID] {
        switch self {
        case .retry(let jobs), .discard(let jobs), .undo(let jobs): jobs
        case .apply(let files): files.map(\.id)
        }
    }
}

extension ControlClient {
    /// The size limit of the list in one request, in bytes.
    ///
    /// A body may have 64 KiB.
    private static let portion = 48 << 10

    /// Asks the instance to carry out a command, in as many requests as needed.
    ///
    /// - Returns: The ids of the jobs that were named, or that were created for the files.
    /// - Throws: The reason why it was not carried out, or not for all jobs.
    func ask(_ command: JobCommand) throws -> [JobID] {
        let (verb, members, list, values) = command.message
        var jobs: [JobID] = []
        var rest = values[...]
        while !rest.isEmpty {
            var size = 0
            let portion = rest.prefix { value in
                defer { size += value.line.utf8.count + 1 }
                return size < Self.portion
            }
            rest = rest.dropFirst(portion.count)
            let body = members.merging([list: .array(Array(portion))]) { $1 }
            let answer = try ask("POST", "/v1/\(verb)", .object(body))
            jobs += answer["jobs"].texts.map { JobID($0) }
        }
        return jobs
    }
}
