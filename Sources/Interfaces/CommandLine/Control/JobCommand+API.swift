import ControlAPI
import JSON
import Pipeline
import Rules
import System

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
    func ask(_ command: JobCommand) throws(Problem) -> [JobID] {
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
            jobs += (answer.object?["jobs"]?.array ?? []).compactMap { $0.string.map { JobID($0) } }
        }
        return jobs
    }
}
