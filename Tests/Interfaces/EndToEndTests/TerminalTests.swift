import Glibc
import System
import Testing
import TestKit

/// SIGHUP: a request to reload, or the hangup of the terminal.
struct TerminalTests {
    private static func rules(_ names: [String]) -> String {
        "rules:\n"
            + names.map { "  - { name: \($0), path: in/**, settle: 60ms, action: { use: log } }\n" }.joined()
    }

    private static func text(_ path: PathBytes) -> String { TestFile.text(path) ?? "" }

    /// The program, run from an interactive shell in its own terminal.
    private final class Session {
        let shell: RunningProgram
        let program: pid_t
        private let directory: PathBytes
        private let master: Int32

        /// Starts the shell and the program.
        ///
        /// - Parameters:
        ///   - directory: The directory of the rules.
        ///   - prefix: The words before the program.
        ///   - suffix: The words after it.
        /// - Throws: An error if there is no terminal, or if the program does not start.
        init(in directory: PathBytes, prefix: String, suffix: String) throws {
            self.directory = directory
            TestFile.write(directory.appending("rules.yaml"), TerminalTests.rules(["first"]))
            TestFile.makeDirectory(directory.appending("in"))
            master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
            // unlockpt(3) and ptsname(3), which Swift does not import.
            var isLocked: Int32 = 0
            try #require(ioctl(master, 0x4004_5431, &isLocked) == 0)
            var number: UInt32 = 0
            try #require(ioctl(master, 0x8004_5430, &number) == 0)
            let terminal = "/dev/pts/\(number)"
            let bash = "exec setsid --ctty bash --norc --noprofile --noediting -i <\(terminal) >\(terminal) 2>&1"
            shell = RunningProgram("/bin/sh", ["-c", bash], in: directory, output: directory.appending("shell"))
            TestFile.write(
                directory.appending("start"),
                "echo $$ >pid; exec '\(Places.alight)' run rules.yaml --no-auto-reload >run.out 2>run.err")
            let line = Array("\(prefix) sh start \(suffix)\n".utf8)
            try #require(write(master, line, line.count) == line.count)
            let path = directory.appending("run.err")
            try #require(Deadline.wait { TerminalTests.text(path).contains("ready: watching") })
            program = try #require(pid_t(TerminalTests.text(directory.appending("pid")).dropLast()))
        }

        deinit { if isRunning { kill(program, SIGKILL) } }

        /// Whether the program runs.
        ///
        /// A zombie no longer has a command line.
        var isRunning: Bool { !(TestFile.read(PathBytes("/proc/\(program)/cmdline")) ?? []).isEmpty }

        /// Whether the socket exists.
        ///
        /// A program that stops removes it, and a killed one leaves it.
        var hasSocket: Bool { TestFile.exists(directory.appending(".run/control.sock")) }

        /// Closes the terminal, which ends the shell.
        func closeTerminal() {
            close(master)
            #expect(shell.wait() != nil)
        }

        /// Changes the rules and returns whether the program reloads them.
        func reloads(_ names: [String]) -> Bool {
            TestFile.write(directory.appending("rules.yaml"), TerminalTests.rules(names))
            kill(program, SIGHUP)
            let path = directory.appending("run.err")
            let message = "reloaded: watching 1 directory for \(names.count) rules"
            return Deadline.wait { TerminalTests.text(path).contains(message) }
        }
    }

    @Test(arguments: ["", "</dev/null &"])
    func `SIGHUP reloads, and stops the program when its terminal is closed`(suffix: String) throws {
        try withTempTree { tree in
            let session = try Session(in: tree.root, prefix: "", suffix: suffix)
            #expect(session.reloads(["first", "second"]))
            #expect(session.isRunning && session.hasSocket)
            session.closeTerminal()
            #expect(Deadline.wait { !session.isRunning })
            #expect(!session.hasSocket)
        }
    }

    @Test(arguments: ["nohup", "setsid"])
    func `under nohup or setsid SIGHUP reloads, even after the terminal was closed`(prefix: String) throws {
        try withTempTree { tree in
            let session = try Session(in: tree.root, prefix: prefix, suffix: "</dev/null &")
            #expect(session.reloads(["first", "second"]))
            session.closeTerminal()
            #expect(session.reloads(["first", "second", "third"]))
            kill(session.program, SIGTERM)
            #expect(Deadline.wait { !session.isRunning })
            #expect(!session.hasSocket)
        }
    }
}
