import ArgumentParser
import Rules
import Storage

/// Names of jobs: ids, and prefixes of ids.
enum JobName {
    /// The minimum length of a prefix; fewer characters of the time in an id are too ambiguous.
    private static let least = 4
    /// The maximum number of jobs to list when a prefix is ambiguous.
    private static let mostCandidates = 10

    /// An error for a name that does not identify a job.
    struct Problem: Error {
        var message: String
        var help: String

        func say() { Output.error.write("error: \(message)\n    help: \(help)") }
    }

    /// Validates names before a journal is opened.
    ///
    /// - Throws: `ValidationError` for names that are too short.
    static func validate(_ names: [String]) throws {
        for name in names where name.utf8.count < least {
            throw ValidationError("'\(Display.text(name))' is not a job id; give at least \(least) characters of one")
        }
    }

    /// Returns the only job whose id has this prefix.
    ///
    /// Case does not matter; ids contain only uppercase letters.
    static func find(_ name: String, in reader: JournalReader) throws(StorageError) -> Result<JobEntry, Problem> {
        let id = name.uppercased()
        let isID = id.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
        let found = isID ? try reader.jobs(beginningWith: id, limit: mostCandidates + 1) : []
        if found.count == 1 { return .success(found[0]) }
        if let exact = found.first(where: { $0.id.description == id }) { return .success(exact) }
        let shown = Display.text(name)
        guard !found.isEmpty else {
            let message = "there is no job '\(shown)' in '\(Display.path(reader.path))'"
            return .failure(Problem(message: message, help: "`alight jobs` lists them"))
        }
        let candidates = found.prefix(mostCandidates).map { job in
            "\n    \(job.id)  \(job.state.rawValue)  \(Display.text(job.rule)): \(job.event) \(Display.path(job.path))"
        }
        let rest = found.count > mostCandidates ? "\n    …" : ""
        return .failure(
            Problem(
                message: "'\(shown)' matches the ids of several jobs:\(candidates.joined())\(rest)",
                help: "give more of the id"))
    }
}
