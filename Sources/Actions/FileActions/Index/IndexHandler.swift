package import ActionAPI
import FileEvents
import Glibc
import PluginProtocol
package import Rules
import Synchronization
import System

/// The `index` action: maintains a JSON list of the files that a rule matches.
///
/// An event only determines which file to check. If anything else has changed the list since it was last written, or
/// the program has started, the list is generated again from the existing files. The list itself is never read.
package struct IndexHandler: Handler {
    private let files = IndexFiles()

    package init() {}

    package let summary = HandlerDescription(
        "index",
        [
            "to": .path(
                "The path of the list. Missing directories are created.", example: "list.json", pattern: "[^/]$"),
            "sort": .choice(
                FileIndex.Key.allCases.flatMap { [$0.rawValue, "-\($0.rawValue)"] },
                "The sort key; a leading '-' sorts in descending order.", default: "name"),
            "allow": Jail.schema,
        ], required: ["to"], events: nil, neededEvents: [.created, .modified, .deleted],
        traits: [.sharesFile, .isBrief])

    package func run(_ invocation: Invocation) -> Outcome { run([invocation])[0] }

    /// Applies several events, and writes each list once.
    package func run(_ invocations: [Invocation]) -> [Outcome] {
        var groups: [IndexFiles.Key: [Int]] = [:]
        var outcomes = invocations.enumerated().map { index, invocation in
            Outcome.of { () throws(FileError) in
                let path = try Destination.path(invocation)
                guard invocation.parameters["to"]?.bytes?.last != .slash else {
                    throw FileError(EISDIR, "'to' must name a file, not '\(path.parent)/'")
                }
                groups[IndexFiles.Key(rule: invocation.job.rule, path: path), default: []].append(index)
                return Outcome(.succeeded)
            }
        }
        for (key, members) in groups {
            let outcome = files.file(key).update(members.map { invocations[$0] })
            for index in members { outcomes[index] = outcome }
        }
        return outcomes
    }
}

/// The lists that are stored in memory.
private final class IndexFiles: Sendable {
    struct Key: Hashable {
        var rule: String
        var path: PathBytes
    }

    /// The maximum number of lists.
    ///
    /// More are needed only if the placeholders of `to` differ from event to event. A list that is dropped is generated
    /// again.
    private static let most = 16

    private let stored = Mutex<[(key: Key, file: IndexFile)]>([])

    /// Returns the list for a key; the least recently used list is dropped if there are too many.
    func file(_ key: Key) -> IndexFile {
        stored.withLock { stored in
            let index = stored.firstIndex { $0.key == key }
            let file = index.map { stored.remove(at: $0).file } ?? IndexFile(key.path)
            stored.append((key, file))
            if stored.count > Self.most { stored.removeFirst() }
            return file
        }
    }
}
