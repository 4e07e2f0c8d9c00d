package import ActionAPI
import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
package import Rules
import System

/// The `touch` action: sets a file's times, or creates an empty file such as a marker.
package struct TouchHandler: FileHandler {
    package init() {}

    package let summary = HandlerDescription(
        "touch",
        [
            "path": .path("The path to use instead of the file's own.", example: "${path}.done"),
            "create": .flag(
                "Whether an empty file and its parent directories are created if there is none.", default: false),
            "time": .string(
                "The new time: 'now', '2026-11-21T14:02:11Z', a local '2026-11-21 14:02', or '@' and "
                    + "seconds since 1970.",
                default: "now", minLength: nil),
            "set": .choice(
                ["both", "mtime", "atime"], "The times to set: modification ('mtime'), access ('atime'), or both.",
                default: "both"),
            "allow": Jail.schema,
        ], traits: .isBrief)

    package func handle(_ invocation: Invocation) throws(FileError) -> Outcome {
        let word = invocation.text("time") ?? "now"
        guard let time = word == "now" ? DiskProbe.now() : TimestampText.parse(word) else {
            throw .failed(
                "'\(word)' is not a time; write 'now', '2026-11-21T14:02:11Z' or '@1234567890'", code: "bad-time")
        }
        let path = try path(invocation)
        let (file, isNew) = try open(path, invocation)
        let set = invocation.text("set") ?? "both"
        func value(_ isSet: Bool) -> cal_time {
            cal_time(seconds: time.seconds, nanoseconds: time.nanoseconds, is_left: isSet ? 0 : 1)
        }
        let error = cal_change_times(file.descriptor, value(set != "mtime"), value(set != "atime"))
        guard error == 0 else { throw FileError(error, "cannot set the times of '\(path)'") }
        return Outcome(.succeeded, isNew ? "created \(path)" : "set the times of \(path)", outputs: [path])
    }

    private func path(_ invocation: Invocation) throws(FileError) -> PathBytes {
        guard let path = invocation.parameters["path"]?.bytes else { return invocation.job.event.path }
        guard !path.isEmpty, !path.contains(0), path.last != .slash else {
            throw FileError(EINVAL, "'path' must be the path of a file")
        }
        return invocation.baseDirectory.resolving(path).normalized
    }

    private func open(_ path: PathBytes, _ invocation: Invocation) throws(FileError) -> (OpenFile, isNew: Bool) {
        let creates = invocation.flag("create", default: false)
        if path == invocation.job.event.path, !creates {
            let source = try SourceFile(invocation)
            guard source.metadata.type != .symlink else { throw Self.linkRefusal(path) }
            return (source.file, false)
        }
        let name = PathBytes(path.lastComponent)
        let directory = try Jail(invocation, parameters: ["path"]).open(path.parent, making: creates)
        for _ in 0..<Self.mostTries {
            do throws(FileError) {
                let file = try directory.opened(name, CAL_OPEN_ENTRY)
                guard try file.metadata().type != .symlink else { throw Self.linkRefusal(path) }
                return (file, false)
            } catch {
                guard error.errno == ENOENT else { throw error }
                guard creates else { throw FileError(Outcome(.skipped, "'\(path)' does not exist", code: "gone")) }
            }
            let made = directory.create(name, mode: 0o666)
            if made >= 0 { return (OpenFile(made), true) }
            guard errno == EEXIST else { throw FileError(errno, "cannot create '\(path)'") }
        }
        throw FileError(EBUSY, "another process keeps creating and removing '\(path)'")
    }

    private static let mostTries = 10

    private static func linkRefusal(_ path: PathBytes) -> FileError {
        .failed("'\(path)' is a link", code: "not-a-file")
    }
}
