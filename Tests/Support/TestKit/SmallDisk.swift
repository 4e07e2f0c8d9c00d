import Glibc
package import System

/// A small file system, mounted in its own namespace.
package enum SmallDisk {
    /// The reason that none can be mounted here; nil if one can.
    package static let problem: String? = {
        let attempt = SmallDisk.words(on: "/mnt", options: "size=1m") + ["true"]
        let program = withTempTree { tree in
            RunningProgram("/usr/bin/env", attempt, in: "/", output: tree.path("try")).wait()
        }
        return program == 0 ? nil : "no file system can be mounted, even in a user namespace"
    }()

    /// Returns words that, in front of a command, run it with a file system in memory mounted at the directory.
    ///
    /// Other processes see the file system below `/proc/PID/root`.
    ///
    /// - Parameters:
    ///   - directory: An existing directory.
    ///   - options: The options of mount(8), such as `size=1m`.
    ///   - script: A shell command that runs in the directory first.
    /// - Returns: The words.
    package static func words(on directory: PathBytes, options: String, script: String = ":") -> [String] {
        let privileges = geteuid() == 0 ? [] : ["--user", "--map-root-user"]
        let line = #"mount -t tmpfs -o "$1" small "$0" && (cd "$0" && eval "$2") && shift 2 && exec "$@""#
        return ["unshare", "--mount"] + privileges + ["sh", "-c", line, directory.description, options, script]
    }

    /// Fills the remaining space.
    package static func fill(_ directory: PathBytes) {
        let filler = directory.appending("filler")
        let descriptor = filler.withCString { open($0, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644) }
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        for size in [65_536, 4096, 1] {
            let block = [UInt8](repeating: 0, count: size)
            while block.withUnsafeBytes({ write(descriptor, $0.baseAddress, $0.count) }) > 0 {}
        }
    }

    /// Frees the space that ``fill(_:)`` used.
    package static func empty(_ directory: PathBytes) { _ = directory.appending("filler").withCString { unlink($0) } }
}
