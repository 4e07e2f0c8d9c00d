import FileEvents
import Glibc
package import System

/// A file system that is soon full, mounted in a namespace of its own.
package enum SmallDisk {
    /// Why there can be none here; nil when there can.
    package static let problem: String? = {
        let attempt = SmallDisk.words(on: "/mnt", options: "size=1m") + ["true"]
        let program = withTempTree { tree in
            RunningProgram("/usr/bin/env", attempt, in: "/", output: tree.path("try")).wait()
        }
        return program == 0 ? nil : "no file system can be mounted, not even in a user namespace"
    }()

    /// Words in front of a program, which becomes it with a file system in memory at the folder.
    ///
    /// Who is outside sees it below `/proc/PID/root`.
    ///
    /// - Parameters:
    ///   - folder: An existing folder.
    ///   - options: What mount(8) is told, such as `size=1m`.
    ///   - script: A line of shell that is run in the folder first.
    /// - Returns: The words.
    package static func words(on folder: PathBytes, options: String, script: String = ":") -> [String] {
        let privileges = geteuid() == 0 ? [] : ["--user", "--map-root-user"]
        let line = #"mount -t tmpfs -o "$1" small "$0" && (cd "$0" && eval "$2") && shift 2 && exec "$@""#
        return ["unshare", "--mount"] + privileges + ["sh", "-c", line, folder.description, options, script]
    }

    /// Takes all room that is left.
    package static func fill(_ folder: PathBytes) {
        let filler = folder.appending("filler")
        let descriptor = filler.withCString { open($0, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644) }
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        for size in [65_536, 4096, 1] {
            let block = [UInt8](repeating: 0, count: size)
            while block.withUnsafeBytes({ write(descriptor, $0.baseAddress, $0.count) }) > 0 {}
        }
    }

    /// Gives it back.
    package static func empty(_ folder: PathBytes) { _ = folder.appending("filler").withCString { unlink($0) } }
}
