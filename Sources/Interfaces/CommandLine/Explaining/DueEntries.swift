import FileEvents
import Globbing
import JSON
import Pipeline
import Rules
import Storage
import System

extension DuePath {
    /// The path as an entry of a list of jobs.
    var entry: JobEntry { JobEntry(due: path, rule: rule, event: event, since: since, until: until, message: reason) }
}

extension [JobEntry] {
    /// Returns the jobs and due paths, newest first.
    ///
    /// A path whose action has started in the meantime is not listed as due.
    func adding(_ due: [JobEntry]) -> [JobEntry] {
        if due.isEmpty { return self }
        let open = filter { $0.state == .running || $0.state == .pending }
        let others = due.filter { due in
            !open.contains { $0.path == due.path && $0.rule == due.rule && $0.created >= due.created }
        }
        return (self + others).sorted { ($1.time, $1.id.description) < ($0.time, $0.id.description) }
    }
}

/// The due paths of the running instance.
///
/// They have no rows in the journal.
enum DueEntries {
    /// Returns the due paths of a query; empty if no instance uses the journal, or if it does not answer.
    static func ofInstance(_ journal: PathBytes, _ query: JournalQuery) -> [JobEntry] {
        guard query.states.isEmpty || query.states.contains(.pending), let socket = DiskStore.control(of: journal),
            let answer = try? ControlClient(socket, patience: 2).ask("GET", target(query))
        else { return [] }
        return (answer.object?["jobs"]?.array ?? []).compactMap { entry($0, query) }
    }

    private static func target(_ query: JournalQuery) -> String {
        var target = "/v1/jobs?state=pending&limit=1000"
        if let rule = query.rule { target += "&rule=\(encoded(Array(rule.utf8)))" }
        switch query.paths {
        case nil: break
        case .inside(let path): target += "&path=\(encoded(path.bytes))"
        case .matching(let glob): target += "&path=\(encoded(Array(glob.description.utf8)))"
        }
        return target
    }

    private static func encoded(_ bytes: [UInt8]) -> String {
        bytes.map { "%" + String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    private static func time(_ text: String) -> Timestamp? {
        guard var time = JSONLine.time(text) else { return nil }
        let fraction = text.dropFirst(20).prefix(9).filter(\.isNumber)
        time.nanoseconds = UInt32(fraction + String(repeating: "0", count: 9 - fraction.count)) ?? 0
        return time
    }

    private static func entry(_ value: JSONValue, _ query: JournalQuery) -> JobEntry? {
        guard let job = value.object, job["id"] == nil, let path = JSONLine.path(job), query.takes(path),
            let event = job["event"]?.string.flatMap(EventKind.init(rawValue:)), let rule = job["rule"]?.string,
            let created = job["created"]?.string.flatMap(time), created >= query.since ?? created
        else { return nil }
        return JobEntry(
            due: path, rule: rule, event: event, since: created,
            until: job["due"]?.string.flatMap { JSONLine.time($0) }, message: job["message"]?.string)
    }
}
