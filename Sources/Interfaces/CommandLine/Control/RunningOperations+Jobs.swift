import ControlAPI
import Engine
import FileEvents
import Foundation
import Gates
import Glibc
import JSON
import Monitoring
import Rules
import Running
import Storage
import System

// Operations on the jobs in the journal's file.
extension RunningOperations {
    /// The size limit of an image, in bytes.
    private static let mostImageBytes: off_t = 10 << 20

    func jobs(_ query: JobsQuery) throws(APIError) -> JSONValue {
        let wanted = try Self.query(query)
        let reader = try reader()
        let (due, holds) = duePaths(wanted)
        let (jobs, hasMore) = try Self.trying { try reader.jobs(wanted) }
        return .members([
            "jobs": jobs.map { $0.held(by: holds[$0.rule]) }.adding(due).map(\.object),
            "next": JSONValue.text(hasMore ? jobs.last?.position.description : nil),
        ])
    }

    /// Returns the due paths that match a query, and the waits that hold all jobs of rules.
    ///
    /// The paths are part of its first page, in addition to its jobs.
    private func duePaths(_ query: JournalQuery) -> (due: [JobEntry], holds: [String: RuleGates.Hold]) {
        guard query.states.isEmpty || query.states.contains(.pending) else { return ([], [:]) }
        let limit = query.limit ?? JobsQuery.mostJobs
        guard let due = engine.duePaths(of: query.rule, limit: limit, within: Self.dueTimeout, where: query.takes)
        else { return ([], [:]) }
        let isFirst = query.before == nil
        return (due.paths.filter { isFirst && $0.since >= query.since ?? $0.since }.map(\.entry), due.holds)
    }

    private static func query(_ asked: JobsQuery) throws(APIError) -> JournalQuery {
        var query = JournalQuery(rule: asked.rule, limit: asked.limit)
        for word in asked.states {
            guard let state = JobState(rawValue: word) else {
                throw APIError(
                    400, "invalid job state '\(word)'", help: "write pending, running, succeeded, skipped or failed")
            }
            query.states.insert(state)
        }
        if let before = asked.before {
            guard let position = JobPosition(before) else {
                throw APIError(
                    400, "invalid position '\(before)' in a list of jobs", help: "use the 'next' of a response")
            }
            query.before = position
        }
        if let since = asked.since {
            query.since = try trying(400, "since: ") { try TimeText.parse(since, now: DiskProbe.now()) }
        }
        if let path = asked.path {
            guard path.first == .slash else {
                throw APIError(400, "'\(PathBytes(path))' is not an absolute path", help: "start it with '/'")
            }
            query.paths = try trying(400, "path: ") { try JournalQuery.Paths(naming: PathBytes(path)) }
        }
        return query
    }

    func job(_ id: String) throws(APIError) -> JSONValue { .object(try details(id).object) }

    private func details(_ text: String) throws(APIError) -> JobDetails {
        let id = JobID(text.uppercased())
        guard id.isWellFormed else {
            throw APIError(404, "invalid job id '\(text)'", help: "/v1/jobs lists the ids of all jobs")
        }
        let reader = try reader()
        guard let details = try Self.trying(body: { try reader.details(of: id) }) else {
            throw APIError(404, "there is no job '\(id)'", help: "/v1/jobs lists the ids of all jobs")
        }
        return details
    }

    // MARK: Failed jobs

    func retry(_ id: String) throws(APIError) -> JSONValue {
        let job = try failedJob(id, "retried")
        guard !job.job.isUnreadable else {
            throw APIError(
                409, "job \(job.job.id) cannot be read: its event is not known",
                help: "'alight apply' runs its rule for the file, and discarding removes the job")
        }
        carryOut(.retry([job.job.id]))
        return ["job": try self.job(id)]
    }

    func discard(_ id: String) throws(APIError) -> JSONValue {
        let job = try failedJob(id, "discarded")
        carryOut(.discard([job.job.id]))
        return .members(["job": job.object])
    }

    private func failedJob(_ id: String, _ what: String) throws(APIError) -> JobDetails {
        let details = try details(id)
        guard details.job.state == .failed else {
            throw APIError(
                409, "job \(details.job.id) \(details.job.state.sentence): only failed jobs can be \(what)",
                help: "/v1/jobs?state=failed lists those")
        }
        return details
    }

    // MARK: Images

    func input(of id: String) throws(APIError) -> (bytes: [UInt8], type: String) {
        let job = try details(id).job
        let path = job.path
        let gone = APIError(404, "'\(path)' is no longer a file", help: "it may have been moved by the rule's action")
        // No symbolic link below the rule's root is followed: access to the job does not imply access to the link's
        // target.
        let rule = engine.status(at: .now).ruleset.rule(named: job.rule)
        let descriptor = DiskProbe.openForReading(path, below: rule?.root(matching: path) ?? "/")
        guard descriptor >= 0 else { throw gone }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var status = stat()
        // Nor is a file with several hard links served: the path may be a second name of some other file.
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1 else {
            throw gone
        }
        let none = APIError(
            415, "'\(path)' is not an image of at most 10 MiB", help: "only png, jpeg, gif and webp are shown")
        guard status.st_size <= Self.mostImageBytes else { throw none }
        let bytes = Array((try? file.read(upToCount: Int(status.st_size))) ?? Data())
        guard let type = Self.imageType(bytes) else { throw none }
        return (bytes, type)
    }

    private static func imageType(_ bytes: [UInt8]) -> String? {
        if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return "image/png" }
        if bytes.starts(with: [0xFF, 0xD8, 0xFF]) { return "image/jpeg" }
        if bytes.starts(with: "GIF87a".utf8) || bytes.starts(with: "GIF89a".utf8) { return "image/gif" }
        let isRIFF = bytes.starts(with: "RIFF".utf8) && bytes.dropFirst(8).starts(with: "WEBP".utf8)
        return isRIFF ? "image/webp" : nil
    }
}
