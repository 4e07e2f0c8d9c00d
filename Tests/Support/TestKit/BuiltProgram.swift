package import Glibc
package import System

/// The paths of built products and of the checkout.
package enum Places {
    /// The directory of the built products, which also contains the test bundle.
    package static let products: PathBytes = {
        var buffer = [CChar](repeating: 0, count: 4096)
        let length = readlink("/proc/self/exe", &buffer, buffer.count)
        return PathBytes(buffer[..<max(0, length)].map { UInt8(bitPattern: $0) }).parent
    }()

    package static var alight: PathBytes { products.appending("alight") }
    package static var launcher: PathBytes { products.appending("alight-launch") }

    /// The checkout, derived from the path of this source file at compile time.
    package static let checkout = PathBytes(#filePath).parent.parent.parent.parent
}

/// A program started by a test, with its output redirected to files.
///
/// It is killed when this object is deallocated, if it is still running.
package final class RunningProgram {
    package let pid: pid_t
    private let outputPath: PathBytes
    private let errorPath: PathBytes
    private var status: Int32?

    /// Starts a program with its own environment.
    package init(
        _ executable: PathBytes, _ arguments: [String], in directory: PathBytes, environment: [String: String] = [:],
        output: PathBytes
    ) {
        outputPath = PathBytes(output.bytes + Array(".out".utf8))
        errorPath = PathBytes(output.bytes + Array(".err".utf8))
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND
        outputPath.withCString { _ = posix_spawn_file_actions_addopen(&actions, 1, $0, flags, 0o644) }
        errorPath.withCString { _ = posix_spawn_file_actions_addopen(&actions, 2, $0, flags, 0o644) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

        var values = ["PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": directory.description]
        // As root, the journal and the scratch directories would otherwise be in system-wide directories.
        values["RUNTIME_DIRECTORY"] = directory.appending(".run").description
        values["XDG_STATE_HOME"] = directory.appending(".state").description
        values["ALIGHT_CONTROL"] = directory.appending(".run/control.sock").description
        values.merge(environment) { _, new in new }
        // env(1) changes the directory and executes the program: posix_spawn's own way is not visible to Swift.
        let words = ["/usr/bin/env", "-C", directory.description, executable.description] + arguments
        var argv: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        var envp: [UnsafeMutablePointer<CChar>?] = values.map { strdup("\($0)=\($1)") } + [nil]
        defer { for pointer in argv + envp { free(pointer) } }
        var pid = pid_t()
        let error = Descriptors.whileNoneIsWritten {
            posix_spawn(&pid, "/usr/bin/env", &actions, &attributes, &argv, &envp)
        }
        precondition(error == 0, "cannot start \(executable): errno \(error)")
        self.pid = pid
    }

    /// Starts `alight` in a directory, in which the files of its output have the given name.
    package static func alight(
        _ arguments: [String], in directory: PathBytes, environment: [String: String] = [:], output: String = "run"
    ) -> RunningProgram {
        RunningProgram(
            Places.alight, arguments, in: directory, environment: environment, output: directory.appending(output))
    }

    deinit {
        if exitStatus() == nil {
            kill(pid, SIGKILL)
            var status: Int32 = 0
            waitpid(pid, &status, 0)
        }
    }

    package var output: String { TestFile.text(outputPath) ?? "" }
    package var error: String { TestFile.text(errorPath) ?? "" }

    /// The complete lines of standard output so far.
    package var lines: [String] {
        let text = output
        return text.split(separator: "\n").dropLast(text.hasSuffix("\n") ? 0 : 1).map(String.init)
    }

    package func signal(_ number: Int32) { kill(pid, number) }

    /// Stops the program with SIGSTOP and waits until none of its threads runs.
    ///
    /// Returns false if it exits instead.
    package func freeze(within limit: Duration = .seconds(60)) -> Bool {
        signal(SIGSTOP)
        return Deadline.wait(within: limit) {
            var info = siginfo_t()
            return waitid(P_PID, id_t(pid), &info, WSTOPPED | WNOHANG) == 0 && info.si_signo == SIGCHLD
        }
    }

    /// The exit code if the program has exited, 128 + n if a signal terminated it; nil while it runs.
    package func exitStatus() -> Int32? {
        if let status { return status }
        var raw: Int32 = 0
        guard waitpid(pid, &raw, WNOHANG) == pid else { return nil }
        status = raw & 0x7f == 0 ? raw >> 8 & 0xff : 128 + (raw & 0x7f)
        return status
    }

    /// Waits until `alight` watches all directories.
    ///
    /// Returns false if it exits or is not ready in time.
    package func waitUntilReady(within limit: Duration = .seconds(60)) -> Bool {
        Deadline.wait(within: limit) { error.contains("ready: watching") || exitStatus() != nil } && exitStatus() == nil
    }

    /// Sends SIGTERM and waits for the program to exit.
    ///
    /// Returns nil if it does not exit in time.
    package func stop(within limit: Duration = .seconds(120)) -> Int32? {
        signal(SIGTERM)
        return wait(within: limit)
    }

    /// Waits for the program to exit.
    ///
    /// Returns nil if it does not exit in time.
    package func wait(within limit: Duration = .seconds(120)) -> Int32? {
        Deadline.poll(within: limit) { exitStatus() }
    }

    /// Waits for the program to exit and returns its exit status and its output.
    package func result() -> (status: Int32?, output: String, error: String) {
        let status = wait()
        return (status, output, error)
    }

    /// Starts a process that repeatedly renames each directory, puts a symbolic link in its place and renames it back,
    /// as fast as possible, until it is killed.
    ///
    /// - Parameters:
    ///   - directories: The directories to swap.
    ///   - outside: The target of the links.
    ///   - root: The working directory, which also receives the output.
    ///   - isOrdinary: Whether the process runs as an ordinary user.
    ///   - meanwhile: A line of Python that runs while a link is in place; it can use the name `outside`.
    ///   - pause: The number of seconds for which the directories stay in place between two rounds.
    /// - Returns: The process, which is killed when the object is deallocated.
    package static func swapping(
        _ directories: [PathBytes], for outside: PathBytes, in root: PathBytes, isOrdinary: Bool = false,
        meanwhile: String = "pass", pause: Double = 0
    ) -> RunningProgram {
        let script = """
            import os, sys, time
            outside, directories = sys.argv[1], sys.argv[2:]
            while True:
                for directory in directories:
                    try:
                        os.rename(directory, directory + ".real")
                        os.symlink(outside, directory)
                        \(meanwhile)
                    except OSError: pass
                    try:
                        os.unlink(directory)
                        os.rename(directory + ".real", directory)
                    except OSError: pass
                if \(pause): time.sleep(\(pause))
            """
        let words = ["/usr/bin/python3", "-Sc", script, "\(outside)"] + directories.map { "\($0)" }
        return RunningProgram(
            "/usr/bin/env", (isOrdinary ? ScenarioRunner.asOrdinaryUser : []) + words, in: root,
            output: root.appending("swapper"))
    }
}

extension String {
    /// The last lines of the string.
    package func lastLines(_ count: Int) -> String { split(separator: "\n").suffix(count).joined(separator: "\n") }
}
